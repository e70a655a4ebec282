// Loads of the open checkpoint that all ranks make together, or that take what other ranks saved.
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/attempt.hpp"
#include "comm/calls.hpp"
#include "engine/collective_load.hpp"
#include "engine/reader.hpp"

namespace kedge::engine {

void Reader::load_all(std::span<const Want> wants, std::optional<Failure> local) {
  if (auto wrong = uses_.lifecycle.check_phase(comm::Call::load_all, {Phase::reading})) local = std::move(wrong);
  if (!local) local = check(wants, uses_.staging.devices());
  if (!local) local = attempt([&] { require_present(); });
  const pipeline::Pause::Guard guard(uses_.pause);
  try {
    comm::begin_call(uses_.group, comm::Call::load_all, 0, local);
    (void)engine::load_all(uses_.group, *open_, *info_, wants, uses_.load_buffer_bytes);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::corrupt) remember_shared(error.failure());
    throw;
  }
}

void Reader::load_each(std::string_view name,
                       const std::function<void(LogicalRank, std::span<const std::byte>)>& take) const {
  const pipeline::Pause::Guard guard(uses_.pause);
  require_present();
  std::vector<std::byte> bytes;
  for (const recovery::Holding& holding : open_->holdings) {
    const format::StoredRegion* placed = holding.container().find(name);
    if (placed == nullptr) continue;
    bytes.resize(placed->size_bytes);
    holding.container().read(*placed, bytes);
    take(holding.logical_rank(), bytes);
  }
}

std::vector<arrays::SavedName> Reader::find_saved(std::span<const std::string> names) const {
  return engine::find_saved(uses_.group, *open_, *info_, names);
}

}  // namespace kedge::engine

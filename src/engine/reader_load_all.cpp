// Loads of the open checkpoint that all ranks make together, or that take what other ranks saved.
#include <optional>
#include <span>
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
  if (!local) local = attempt([&] { open_->require_present(); });
  const pipeline::BackgroundPause::Guard guard(uses_.pause);
  try {
    comm::begin_call(uses_.group, comm::Call::load_all, 0, local);
    (void)engine::load_all(uses_.group, *open_, *info_, wants, uses_.load_buffer_bytes);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::corrupt) remember_shared(error.failure());
    throw;
  }
}

std::vector<arrays::SavedName> Reader::find_saved(std::span<const arrays::NameToFind> names,
                                                  std::optional<Failure> local) {
  if (auto wrong = uses_.lifecycle.check_phase(comm::Call::find_saved, {Phase::reading})) local = std::move(wrong);
  comm::begin_call(uses_.group, comm::Call::find_saved, 0, local);
  return engine::find_saved(uses_.group, *open_, names);
}

void Reader::verify_rest(bool is_needed) {
  if (comm::begin_call(uses_.group, comm::Call::verify_rest, 0, {}, is_needed ? 1 : 0) == 0 || !open_->unproven) return;
  uses_.group.run_on_all_ranks([&] {
    open_->require_present();
    open_->unproven->verify_unread(open_->holdings);
  });
}

}  // namespace kedge::engine

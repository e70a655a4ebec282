#include "kedge/for_bindings.hpp"

#include <utility>

#include "base/attempt.hpp"
#include "base/text.hpp"
#include "engine/engine_impl.hpp"

namespace kedge {

Status ForBindings::refuse(Engine& engine, std::string_view name, std::string_view reason) {
  engine::EngineImpl& impl = *engine.impl_;
  Status refused;
  auto failure = attempt([&] {
    const Failure given{ErrorCode::invalid_argument, compose("{}: {}", name, reason)};
    refused =
        impl.lifecycle().phase() == engine::Phase::reading ? impl.reader().refuse(given) : impl.writer().refuse(given);
  });
  return failure ? Status(*failure) : refused;
}

void ForBindings::load_all(Engine& engine, std::span<const Want> wants, std::optional<Failure> refused) {
  engine.impl_->call([&] { engine.impl_->reader().load_all(wants, std::move(refused)); });
}

std::vector<ForBindings::Saved> ForBindings::find_saved(Engine& engine, std::span<const NameToFind> names,
                                                        std::optional<Failure> local) {
  std::vector<arrays::NameToFind> asked;
  for (const NameToFind& one : names) {
    asked.push_back({one.name, one.of ? std::optional(one.of->value) : std::nullopt});
  }
  std::vector<Saved> found;
  engine.impl_->call([&] {
    std::vector<arrays::SavedName> names_saved = engine.impl_->reader().find_saved(asked, std::move(local));
    const std::uint32_t ranks = engine.impl_->reader().info().world_size;
    for (arrays::SavedName& saved : names_saved) {
      const auto as = saved.look_up == arrays::LookUp::shard        ? Saved::As::shard
                      : saved.look_up == arrays::LookUp::replicated ? Saved::As::replicated
                                                                    : Saved::As::of_rank;
      const bool is_alike = !saved.unlike && saved.regions == ranks;
      found.push_back({as, saved.type.dtype, saved.type.shape, std::move(saved.type.members), saved.regions, is_alike});
    }
  });
  return found;
}

std::span<const std::byte> ForBindings::committed(const Engine& engine, std::string_view name) {
  return engine.impl_->writer().committed(name);
}

void ForBindings::leave_by_error(Engine& engine, std::string_view why) noexcept { engine.impl_->leave_by_error(why); }

}  // namespace kedge

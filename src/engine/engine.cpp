// The public face: every call goes to the side that does it.
#include "kedge/engine.hpp"

#include <chrono>
#include <memory>
#include <utility>

#include "base/attempt.hpp"
#include "base/keep_forever.hpp"
#include "engine/engine_impl.hpp"
#include "engine/state_io.hpp"
#include "kedge/state.hpp"

namespace kedge {

Engine::Engine(std::unique_ptr<Communicator> communicator, Options options)
    : Engine(std::make_unique<engine::EngineImpl>(std::move(communicator), std::move(options),
                                                  start::Environment::system())) {}
Engine::Engine(std::unique_ptr<engine::EngineImpl> impl) : impl_(std::move(impl)) {}

Engine::~Engine() {
  if (impl_ != nullptr && !impl_->end()) keep_forever(std::shared_ptr<engine::EngineImpl>(std::move(impl_)));
}

Engine::Engine(Engine&&) noexcept = default;

Engine& Engine::operator=(Engine&& other) noexcept {
  const Engine old(std::move(*this));
  impl_ = std::move(other.impl_);
  return *this;
}

bool Engine::need_checkpoint() {
  return impl_->call([&] { return impl_->need_checkpoint(); });
}

bool Engine::should_exit() {
  return impl_->call([&] { return impl_->should_exit(); });
}

void Engine::create(std::string_view tag, const Attributes& attributes) {
  impl_->call([&] { impl_->create(tag, attributes, {}); });
}

void Engine::create_output(std::string_view tag, const Attributes& attributes) {
  impl_->call([&] { impl_->create(tag, attributes, {.is_output = true}); });
}

Status Engine::save(std::string_view name, const Region& region, const Placement& placement) {
  return impl_->writer().save(name, region, placement);
}

Routed Engine::route_out(std::string_view name, std::uint64_t max_bytes) {
  return impl_->writer().route_out(name, max_bytes);
}

void Engine::commit() {
  impl_->call([&] { impl_->commit(); });
}

void Engine::abandon() {
  impl_->call([&] { impl_->writer().abandon(); });
}

Level Engine::level(std::string_view tag) const { return impl_->level(tag); }

Counters Engine::counters() const { return impl_->counters(); }

std::optional<Tag> Engine::open(const Selection& selection, Newer newer) {
  return impl_->open(selection, newer, recovery::Reading::in_open);
}

std::vector<RegionInfo> Engine::regions() const { return impl_->reader().regions(); }

CheckpointInfo Engine::info() const { return impl_->reader().info(); }

Status Engine::load(std::string_view name, const MutableRegion& region) { return impl_->reader().load(name, region); }

void Engine::load_all(std::span<const Want> wants) {
  impl_->call([&] { impl_->reader().load_all(wants); });
}

std::vector<LogicalRank> Engine::logical_ranks() const {
  std::vector<LogicalRank> ranks;
  for (const auto& holding : impl_->reader().checkpoint("logical_ranks").holdings) {
    ranks.push_back(holding.logical_rank());
  }
  return ranks;
}

Routed Engine::route_in(std::string_view name) { return impl_->reader().route_in(name); }

void Engine::close() {
  impl_->call([&] { impl_->reader().close(); });
}

void Engine::checkpoint(std::string_view tag, const State& state, const Attributes& attributes) {
  const engine::StateSize size = engine::size_of(state);
  impl_->call([&] { impl_->create(tag, attributes, {.bytes = size.bytes}); });
  impl_->call([&] {
    if (size.failure) (void)impl_->writer().remember(*size.failure);  // commit throws it, even if save succeeds
    engine::save(impl_->writer(), state);
  });
  commit();
}

std::optional<Tag> Engine::restore(const State& state, const Selection& selection) {
  std::optional<Failure> damage;  // of what the variables hold in part; the same on all ranks
  const double begin_s = impl_->seconds();
  while (true) {
    std::optional<Tag> tag;
    try {
      tag = impl_->open(selection, Newer::keep, recovery::Reading::in_load);
    } catch (const Error& error) {
      if (!damage) throw;
      throw Error(engine::failure_after_partial_load(error.failure(), *damage));
    }
    if (!tag && damage) {
      impl_->call([&] {
        throw Error(engine::failure_after_partial_load({ErrorCode::unrecoverable, "no other checkpoint can be loaded"},
                                                       *damage));
      });
    }
    if (!tag) return std::nullopt;
    impl_->call([&] { engine::load(impl_->reader(), state); });
    try {
      close();
      impl_->reader().log_restored(impl_->seconds() - begin_s);
      return tag;
    } catch (const Error& error) {
      // The damaged commit is rebuilt, or excluded, on all ranks, so this loop ends.
      if (error.code() != ErrorCode::corrupt) throw;
      damage = error.failure();
    }
  }
}

void Engine::wait(std::string_view tag, Level level) {
  impl_->call([&] { impl_->wait(tag, level); });
}

bool Engine::wait_for(std::string_view tag, Level level, std::chrono::duration<double> at_most) {
  return impl_->call([&] { return impl_->wait_for(tag, level, at_most); });
}

void Engine::on_complete(std::string_view tag, Level level, OnComplete callback) {
  impl_->on_complete(tag, level, std::move(callback));
}

void Engine::pause() noexcept {
  if (impl_->is_own_process()) impl_->pause().set_requested(true);
}

void Engine::resume() noexcept {
  if (impl_->is_own_process()) impl_->pause().set_requested(false);
}

void Engine::pin(std::string_view tag) {
  impl_->call([&] { impl_->pin(tag, true); });
}

void Engine::unpin(std::string_view tag) {
  impl_->call([&] { impl_->pin(tag, false); });
}

void Engine::finalize() {
  impl_->call([&] { impl_->finalize(); });
}

bool Engine::finalize_for(std::chrono::duration<double> at_most) {
  return impl_->call([&] { return impl_->finalize_for(at_most); });
}

bool Engine::finalize_if_all_come(std::chrono::duration<double> at_most) {
  try {
    impl_->call([&] { impl_->finalize(at_most); });
    return true;
  } catch (const Error& error) {
    if (comm::ends_communication(error.code()) || error.code() == ErrorCode::bad_state) return false;
    throw;
  }
}

}  // namespace kedge

// Checkpoints whose regions on devices are copied there first: commit returns, and the worker brings them to the store.
#include <memory>
#include <optional>
#include <utility>

#include "base/attempt.hpp"
#include "base/text.hpp"
#include "engine/writer.hpp"

namespace kedge::engine {

/// A snapshot that the application's thread began and the worker seals. It may outlive the writer, if the worker is
/// stopped.
class Writer::PendingSnapshot final : public pipeline::PendingSeal {
 public:
  PendingSnapshot(const Uses& uses, std::unique_ptr<Checkpoint> checkpoint, bool straight, bool has_replicas)
      : uses_(uses), checkpoint_(std::move(checkpoint)), straight_(straight), has_replicas_(has_replicas) {}

  [[nodiscard]] std::optional<Failure> seal(const comm::Group& group) override {
    Checkpoint& checkpoint = *checkpoint_;
    checkpoint.seal_transaction.set_group(group);
    // No region changes the layout: it is the predicted one, for which HDF5 is not called.
    std::shared_ptr<const format::Layout> layout;
    auto local =
        attempt([&] { layout = finish_container(uses_, checkpoint, straight_, [this] { check_not_ending(); }); });
    if (local) {
      local->rank = group.rank();
      checkpoint.on_device.clear();  // memory is freed also if nobody waits for the result any more
    }
    auto failure = checkpoint.seal_transaction.vote_ready(local);
    if (!failure && has_replicas_) failure = compare_replicas(group, replicas_of(checkpoint, *layout));
    if (!failure) failure = checkpoint.seal_transaction.write_seals();
    if (!failure) {
      uses_.ledger.add_commit(checkpoint.commit);
      return std::nullopt;
    }
    checkpoint.on_device.clear();
    if (const auto& left = checkpoint.seal_transaction.discard_failure()) {
      uses_.log.warning("an unfinished container could not be removed: " + to_string(*left));
    }
    return failure;
  }

 private:
  /// COLLECTIVE. The first failure of any rank, on all alike, with all files discarded.
  [[nodiscard]] std::optional<Failure> compare_replicas(const comm::Group& group, const arrays::Replicas& replicas) {
    const auto compared = arrays::compare_containers(group, false, {}, arrays::digest_of(replicas));
    if (compared.replicas_are_equal) return std::nullopt;
    return checkpoint_->seal_transaction.vote(arrays::find_difference(group, replicas));
  }
  /// Between two regions: an engine that ends is not kept waiting for those that are left.
  void check_not_ending() const {
    uses_.pause.wait_while_paused();
    if (uses_.pause.is_ended()) throw Error(ErrorCode::bad_state, "the engine ended before the snapshot was sealed");
  }

  Uses uses_;
  std::unique_ptr<Checkpoint> checkpoint_;
  bool straight_;
  bool has_replicas_;  ///< some rank
};

/// Local. Not while another commit is under way: that may take long, and what is not sealed yet would wait for it.
bool Writer::permits_snapshots(const Expected& expected) {
  const bool is_wanted = uses_.snapshots && uses_.pipeline.waits().is_in_background() && expected.may_be_snapshot &&
                         !expected.is_last && !expected.is_output &&
                         uses_.ledger.known().newest_checkpoint().has_value();
  if (is_wanted && !uses_.pipeline.waits().is_idle()) log_seal_reason(SealReason::busy);
  return is_wanted && uses_.pipeline.waits().is_idle();
}

/// Local. Whether the region needs nothing more in save.
bool Writer::take_snapshot(const format::RegionSpec& spec, const device::Span& from) {
  if (!checkpoint_->container->claim_region(spec)) {
    checkpoint_->has_new_regions = pattern().layout != nullptr;  // without a layout there is nothing to differ from
    return false;
  }
  auto copy = uses_.copies.make_copy(from);
  if (!copy) checkpoint_->container->fill_claimed_region(spec, uses_.staging, from, pattern().mostly_of_devices);
  const std::lock_guard guard(mutex_);
  if (copy) {
    checkpoint_->on_device.push_back({spec, std::move(*copy)});
  } else if (!std::exchange(said_no_memory_, true)) {
    uses_.log.warning(
        compose("rank {}: not enough GPU memory for a snapshot of region '{}' ({}); it is written to the store in save "
                "instead, which takes longer (logged once): free GPU memory, or set device.snapshot = false",
                uses_.group.rank(), spec.name, human_bytes(from.size_bytes)));
  }
  return true;
}

/// Local.
Writer::SealReason Writer::find_seal_reason() const {
  if (checkpoint_->first_failure) return SealReason::failed;
  if (!uses_.pipeline.waits().is_idle()) return SealReason::busy;  // before what a commit under way may still change
  if (!pattern().layout || !checkpoint_->container->is_as_predicted()) return SealReason::structure;
  if (!uses_.pipeline.snapshots().can_prepare(pattern().layout->regions, checkpoint_->attributes))
    return SealReason::manifest;
  return SealReason::no;
}

/// COLLECTIVE. Whether all ranks have all that they saved, and none of them needs the application's thread for more.
bool Writer::agree_on_snapshot() {
  const auto why = static_cast<SealReason>(uses_.group.max(static_cast<std::uint64_t>(find_seal_reason())));
  log_seal_reason(why);
  return why == SealReason::no;
}

/// Local. Each reason once: it is likely to last.
void Writer::log_seal_reason(SealReason why) {
  std::string_view words;
  if (why == SealReason::host && uses_.snapshots && uses_.pipeline.waits().is_in_background()) {
    words = "no region of it is in GPU memory (managed memory does not count)";
  }
  if (why == SealReason::structure) words = "its regions differ from the previous checkpoint's on some rank";
  if (why == SealReason::manifest) words = "its manifest has a new structure";
  if (why == SealReason::busy) words = "the previous one is still being protected or flushed";
  if (words.empty() || !uses_.group.is_root() || !logged_in_commit_.insert(why).second) return;
  uses_.log.info(compose("device.snapshot: {} is written to the node-local stores before commit returns, because {}",
                         checkpoint_->commit.tag, words));
}

/// COLLECTIVE. Makes a snapshot, which is a commit when the worker has sealed it.
Writer::Committed Writer::commit_snapshot(double begin_s) {
  // Made up for where it failed: from here on this commit alone may be there. Global arrays were checked with the
  // commit before, whose layout all ranks have again.
  uses_.markers.mark(uses_.ledger.known().newest_checkpoint()->commit.id);
  Checkpoint& checkpoint = *checkpoint_;
  pipeline::CommitBytes bytes;
  bytes.own = checkpoint.container->container_bytes();
  bytes.total = uses_.group.sum(bytes.own);
  const bool has_replicas = pattern().has_replicas;
  const bool straight = std::exchange(pattern().mostly_of_devices, 2 * checkpoint.device_bytes >= bytes.own);
  last_ = checkpoint.commit.id;
  checkpoint.routed.drop();
  uses_.lifecycle.move_to(Phase::idle);
  const CommitHead head = checkpoint.commit;
  const auto blocked_s = [&, before_s = checkpoint.blocked_s] { return before_s + uses_.clock.seconds() - begin_s; };
  uses_.ledger.add_snapshot(head);
  auto behind = std::make_unique<PendingSnapshot>(uses_, std::move(checkpoint_), straight, has_replicas);
  uses_.pipeline.submit_unsealed(head, {bytes, blocked_s()}, std::move(behind));
  return {.blocked_s = blocked_s(), .is_sealed = false};
}

}  // namespace kedge::engine

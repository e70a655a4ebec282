// Checkpoints whose regions on devices are copied there first: commit returns, and the worker brings them to the store.
#include <memory>
#include <optional>
#include <utility>

#include "base/attempt.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "engine/writer.hpp"

namespace kedge::engine {

/// What the application's thread began and the worker ends. It may outlive the writer, where the worker is cut.
class Writer::Behind final : public pipeline::Unsealed {
 public:
  Behind(const Parts& parts, std::unique_ptr<Checkpoint> checkpoint, bool straight)
      : parts_(parts), checkpoint_(std::move(checkpoint)), straight_(straight) {}

  [[nodiscard]] std::optional<Failure> seal(const comm::Group& group) override {
    Checkpoint& checkpoint = *checkpoint_;
    checkpoint.sealing.continue_over(group);
    // No region changes the layout: it is the predicted one, for which HDF5 is not called.
    auto local =
        attempt([&] { (void)finish_container(parts_, checkpoint, straight_, [this] { parts_.pause.pass(); }); });
    if (local) local->rank = group.rank();
    auto failure = checkpoint.sealing.ready(local);
    if (!failure) failure = checkpoint.sealing.seal_ready();
    if (!failure) {
      parts_.ledger.commit(checkpoint.commit);
      return std::nullopt;
    }
    checkpoint.on_device.clear();
    if (const auto& left = checkpoint.sealing.left_behind()) {
      parts_.setup.log.warning("an unfinished container could not be removed: " + to_string(*left));
    }
    return failure;
  }

 private:
  Parts parts_;
  std::unique_ptr<Checkpoint> checkpoint_;
  bool straight_;
};

/// Local. Not while another commit is under way: that may take long, and what is not sealed yet would wait for it.
bool Writer::permits_snapshots(const Expected& expected) const {
  return parts_.setup.options.device.snapshot && expected.may_be_snapshot && !expected.is_last &&
         parts_.pipeline.is_idle() && parts_.ledger.newest().has_value();
}

/// Local. Whether the region needs nothing more in save.
bool Writer::take_snapshot(const format::RegionSpec& spec, const device::Span& from) {
  if (!checkpoint_->container->promise(spec)) return false;
  auto copy = parts_.copies.take(from);
  if (!copy) checkpoint_->container->fill(spec, parts_.staging, from, mostly_of_devices_);
  const std::lock_guard guard(mutex_);
  if (copy) {
    checkpoint_->on_device.push_back({spec, std::move(*copy)});
  } else if (!std::exchange(said_no_memory_, true)) {
    parts_.setup.log.warning(
        compose("rank {}: no GPU memory for a snapshot of region '{}' ({}): it is copied to the store in save instead; "
                "free GPU memory, or set device.snapshot = false",
                parts_.group.rank(), spec.name, human_bytes(from.size_bytes)));
  }
  return true;
}

/// Local.
Writer::InCommit Writer::why_in_commit() const {
  if (checkpoint_->first_failure) return InCommit::failed;
  if (!layout_ || !checkpoint_->container->is_as_predicted()) return InCommit::structure;
  if (!parts_.pipeline.can_prepare_behind(layout_->regions, checkpoint_->attributes)) return InCommit::manifest;
  return parts_.pipeline.is_idle() ? InCommit::no : InCommit::busy;
}

/// COLLECTIVE. Whether all ranks have all that they saved, and none of them needs the application's thread for more.
bool Writer::is_sealed_behind() {
  const auto why = static_cast<InCommit>(parts_.group.max(static_cast<std::uint64_t>(why_in_commit())));
  const bool is_worth_a_line = why == InCommit::structure || why == InCommit::manifest;
  if (is_worth_a_line && parts_.group.is_root() && said_in_commit_.insert(why).second) {
    parts_.setup.log.info(
        compose("{} is sealed in commit, without a snapshot: {} (device.snapshot)", checkpoint_->commit.tag,
                why == InCommit::structure ? "its regions differ from those of the checkpoint before on some rank"
                                           : "the manifest for the parallel filesystem has a new structure"));
  }
  return why == InCommit::no;
}

/// COLLECTIVE. It is a commit when the worker has sealed it.
Writer::Committed Writer::commit_snapshot(double begin_s) {
  // Made up for where it failed: from here on this commit alone may be there.
  parts_.notes.note(parts_.ledger.newest()->commit.id);
  check_global_arrays(layout_);
  Checkpoint& checkpoint = *checkpoint_;
  pipeline::CommitBytes bytes;
  bytes.own = checkpoint.container->container_bytes();
  bytes.total = parts_.group.sum(bytes.own);
  const bool straight = std::exchange(mostly_of_devices_, 2 * checkpoint.device_bytes >= bytes.own);
  last_ = checkpoint.commit.id;
  checkpoint.routed.drop();
  parts_.copies.drop_unused();
  parts_.lifecycle.move_to(Phase::idle);
  const CommitHead head = checkpoint.commit;
  const auto blocked_s = [&, before_s = checkpoint.blocked_s] { return before_s + parts_.clock().seconds() - begin_s; };
  parts_.ledger.take_snapshot(head);
  auto behind = std::make_unique<Behind>(parts_, std::move(checkpoint_), straight);
  parts_.pipeline.submit_unsealed(head, {bytes, blocked_s()}, std::move(behind));
  return {blocked_s(), false};
}

}  // namespace kedge::engine

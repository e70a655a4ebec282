#include "pipeline/snapshots.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/text.hpp"

namespace kedge::pipeline {
namespace {

/// Names of a lost snapshot and the newest remaining checkpoint, which may have the same tag.
struct Names {
  Names(const CommitHead& lost_one, const std::optional<commits::CommitEntry>& newest)
      : lost(lost_one.tag), left(newest ? newest->commit.tag : Tag("none")) {
    if (lost != left) return;
    lost += compose(" (generation {})", lost_one.generation);
    left += compose(" (generation {})", newest ? newest->commit.generation : 0);
  }
  std::string lost;
  std::string left;
};

}  // namespace

Snapshots::Snapshots(comm::Group group, commits::Ledger& ledger, StageList& stages, StageRunner& runner,
                     const CommitObservers& observers, BackgroundPause& pause, StageTimer& timer, bool may_exist)
    : group_(std::move(group)),
      ledger_(ledger),
      stages_(stages),
      runner_(runner),
      observers_(observers),
      pause_(pause),
      timer_(timer),
      may_exist_(may_exist),
      lost_(ledger) {}

bool Snapshots::can_prepare(std::span<const format::StoredRegion> regions, const Attributes& attributes) {
  return std::ranges::none_of(stages_.all_stages(), [&](const StageWithPolicy& one) {
    return one.policy->may_be_due_next() && one.stage->needs_application(group_, regions, attributes);
  });
}

void Snapshots::begin_snapshot(const CommitHead& commit) {
  lost_.begin_snapshot(commit.tag);
  is_sealing_ = true;
}

bool Snapshots::seal_snapshot(Execution& execution, Job& job) {
  const struct Ends {  // also if other ranks are gone
    std::atomic<bool>& is_sealing;
    ~Ends() { is_sealing = false; }
  } ends{is_sealing_};
  const double begin_s = timer_.now_s();
  const BackgroundPause::Seconds paused_before = pause_.paused_time();
  const auto failure = job.unsealed->seal(execution.with_timeout_for(stages_.sent_bytes(job.progress.bytes.own)));
  std::unique_ptr<PendingSeal> done;  // destroying it may take long, so it must not block readers of the job
  execution.change_job([&] { done = std::move(job.unsealed); });
  done.reset();
  if (failure) {
    drop_snapshot(execution, job, *failure);
    return false;
  }
  const double took_s = timer_.now_s() - begin_s - (pause_.paused_time() - paused_before).count();
  timer_.add_duration(Level::local, job.progress.blocked_s + std::max(took_s, 0.0));
  observers_.notify(&CommitObserver::on_committed, job.progress);
  lost_.forget_tag(job.progress.commit.tag);
  execution.notify_progress();
  runner_.prepare_stages(execution, job);
  for (std::size_t number = 0; number < stages_.size(); ++number) {
    if (job.progress.stages[number].state == StageState::failed) stages_[number].policy->mark_result(true);
  }
  is_sealing_ = false;
  execution.notify_progress();
  return true;
}

/// COLLECTIVE, on the execution's group. The snapshot never was a commit; the previous one stays the newest.
void Snapshots::drop_snapshot(Execution& execution, const Job& job, const Failure& failure) {
  const CommitHead& commit = job.progress.commit;
  lost_.add_loss(commit, failure);
  for (std::size_t number = 0; number < stages_.size(); ++number) {
    if (job.progress.stages[number].state == StageState::due) stages_[number].policy->mark_lost();
  }
  ledger_.drop_snapshot();
  observers_.notify(&CommitObserver::on_snapshot_lost, job.progress, failure);
  is_sealing_ = false;
  execution.notify_progress();
  if (failure.code == ErrorCode::device_failed) throw Error(failure);
}

void Snapshots::throw_if_lost(std::string_view tag) {
  if (!may_exist_) return;
  const auto lost = lost_.find_loss(tag);
  const auto failure = group_.vote(lost ? std::optional(lost->failure) : std::nullopt);
  if (failure) lost_.mark_reported(tag);
  comm::throw_if(failure);
}

std::optional<Failure> Snapshots::unreported_failure() const {
  if (!may_exist_) return std::nullopt;
  return group_.vote(lost_.unreported_failure());
}

void LostSnapshots::add_loss(const CommitHead& commit, const Failure& failure) {
  const std::lock_guard guard(mutex_);
  lost_.push_front({commit, failure});
  if (lost_.size() > kLossesMax) lost_.pop_back();
}

void LostSnapshots::forget_tag(std::string_view tag) {
  const std::lock_guard guard(mutex_);
  std::erase_if(lost_, [&](const Lost& lost) { return lost.commit.tag == tag; });
}

std::optional<LostSnapshots::Lost> LostSnapshots::newest() const {
  const std::lock_guard guard(mutex_);
  return lost_.empty() ? std::nullopt : std::optional(lost_.front());
}

std::optional<LostSnapshots::Lost> LostSnapshots::newest_of(std::string_view tag) const {
  const std::lock_guard guard(mutex_);
  const auto found = std::ranges::find_if(lost_, [&](const Lost& lost) { return lost.commit.tag == tag; });
  return found == lost_.end() ? std::nullopt : std::optional(*found);
}

std::optional<LostSnapshots::Lost> LostSnapshots::find_loss(std::string_view tag) const {
  const auto newest = ledger_.known().find_newest(tag);  // first: the worker notes a loss before it drops the snapshot
  auto lost = newest_of(tag);
  if (lost && newest && is_newer(*newest, lost->commit)) return std::nullopt;
  return lost;
}

void LostSnapshots::begin_snapshot(const Tag& tag) {
  last_tag_ = tag;
  is_reported_ = false;
}

void LostSnapshots::mark_reported(std::string_view tag) noexcept { is_reported_ = is_reported_ || tag == last_tag_; }

std::optional<Failure> LostSnapshots::unreported_failure() const {
  const auto left = ledger_.known().newest_checkpoint();
  const auto lost = newest();
  if (!lost || is_reported_ || (left && is_newer(left->commit, lost->commit))) return std::nullopt;
  const Names names(lost->commit, left);
  Failure failure = lost->failure;
  failure.message = compose(
      "the newest checkpoint, {}, is lost: its snapshot could not be written to the node-local stores: {}; {} "
      "is the newest that is left, and the node-local files are kept. Call wait(tag, local) before finalize: if it "
      "throws, the program can still write another checkpoint",
      names.lost, to_string(lost->failure), names.left);
  failure.path.clear();  // the text contains it
  failure.system_errno = 0;
  return failure;
}

std::string lost_snapshot_warning(const commits::Ledger& ledger, const CommitHead& commit, const Failure& failure) {
  const Names names(commit, ledger.known().newest_checkpoint());
  return compose(
      "the snapshot of {} could not be written to the node-local stores and is lost: {}; {} is still the "
      "newest checkpoint, and the next one may succeed",
      names.lost, to_string(failure), names.left);
}

}  // namespace kedge::pipeline

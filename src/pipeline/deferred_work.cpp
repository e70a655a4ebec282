#include "pipeline/deferred_work.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/attempt.hpp"
#include "base/text.hpp"
#include "pipeline/timeout_factor.hpp"

namespace kedge::pipeline {

DeferredWork::DeferredWork(store::NodeStore& store, commits::Ledger& ledger, const ProtectStage& protect,
                           StageList& stages, StageRunner& runner, const CommitObservers& observers,
                           BackgroundPause& pause, const StageTimer& timer, const Log& log)
    : store_(store),
      ledger_(ledger),
      protect_(protect),
      stages_(stages),
      runner_(runner),
      observers_(observers),
      pause_(pause),
      timer_(timer),
      log_(log),
      unread_files_(store.files) {}

Id128 DeferredWork::plan_work(const Execution& execution, const CommitHead& opened, UnreadWork unread) {
  const Protections found = find_protections(execution.group(), opened);
  // Uses the level that the survey found, because the protection that the commit was recovered from still exists. Also
  // removes partial protections of starts that died while protecting it again, which would accumulate.
  runner_.retire_superseded(execution);
  const bool is_current = !found.current.is_none();
  const bool is_protected = is_current || !found.across_domains.is_none();
  if (!is_protected) ledger_.set_unprotected(opened.id);
  const bool is_due = !is_current && is_scheduled();
  // Once the former copies go, the rest of their protection may protect nothing.
  const bool may_drop = is_protected || found.most_complete.is_none() || !protect_.is_possible();
  remaining_ = {opened, is_due, {}, !is_due && may_drop};
  if (unread.container) remaining_.unread.push_back({opened, {}, true});
  if (unread.others) {
    if (is_protected && !unread.container)
      remaining_.unread.push_back({opened, is_current ? found.current : found.across_domains});
    add_older_commits();
  }
  unread_files_.reset();
  return is_due ? opened.id : Id128{};
}

/// Its containers were verified by the open, or by whoever loaded them.
void DeferredWork::plan_of_other_ranks(const CommitHead& opened, bool reads_others) {
  remaining_ = {opened};
  if (reads_others) {
    remaining_.unread.push_back({.commit = opened, .protection_id = {}, .is_parity = true});
    add_older_commits();
  }
  unread_files_.reset();
}

void DeferredWork::add_older_commits() {
  for (const commits::CommitEntry& entry : ledger_.known().entries) {
    if (entry.commit.id != remaining_.opened.id) remaining_.unread.push_back({entry.commit, {}});
  }
}

/// Finds which protections the ranks have, and lets the ledger keep the best one.
Protections DeferredWork::find_protections(const comm::Group& group, const CommitHead& commit) {
  const Protections found = protect_.find_protections(group, commit.id);
  if (!found.current.is_none()) ledger_.set_protected(commit.id, found.current);
  else if (!found.across_domains.is_none()) ledger_.set_protected(commit.id, found.across_domains);
  else ledger_.prefer_protection(commit.id, found.most_complete);
  return found;
}

bool DeferredWork::run_step(Execution& execution) {
  pause_.restart_limit();
  // If space is short, protecting drops the former copies, from which a damaged container would be rebuilt: read it
  // first.
  const bool container_first = !remaining_.unread.empty() && remaining_.unread.front().is_container;
  if (!container_first && std::exchange(remaining_.must_protect, false)) {
    protect_opened(execution);
    return true;
  }
  if (!remaining_.unread.empty()) {
    read_unread_files(execution);
    return true;
  }
  if (std::exchange(remaining_.must_drop_copies, false)) (void)drop_former_copies(execution.group(), remaining_.opened);
  if (!execution.should_yield()) {
    runner_.prepare_next_container(execution,
                                   store_.files.size_bytes(store::FileKind::container, execution.group().logical_rank(),
                                                           {remaining_.opened.id, {}}));
  }
  return false;
}

/// Protects before reading anything else, because files that the new protection replaces need not be read. A failure is
/// only logged: the commit is open.
void DeferredWork::protect_opened(Execution& execution) {
  const CommitHead& commit = remaining_.opened;
  const comm::Group& group = execution.group();
  // It may have been superseded, or found damaged by whoever loaded it.
  if (group.all(ledger_.known().find(commit.id).has_value())) {
    const double begin_s = timer_.now_s();
    const auto failure = protect_with_space(execution, commit);
    if (!failure)
      std::erase_if(remaining_.unread, [&](const UnreadCommit& what) { return what.commit.id == commit.id; });
    if (group.is_root() && failure) log_not_protected(commit, *failure);
    if (group.is_root() && !failure) {
      log_.info(compose("{} is protected again ({}), took {}", commit.tag, to_string(protect_.scheme()),
                        human_seconds(timer_.now_s() - begin_s)));
    }
  }
  execution.mark_opened_protected();
}

void DeferredWork::log_not_protected(const CommitHead& commit, const Failure& failure) {
  const auto entry = ledger_.known().find(commit.id);
  const bool is_protected = entry && entry->in_stores == Level::protected_;
  log_.warning(compose("{} is open and {}: {}", commit.tag,
                       is_protected ? "keeps the protection that it had" : "not protected against the loss of a node",
                       to_string(failure)));
}

/// Reads the remaining files of one commit until something more urgent comes up.
void DeferredWork::read_unread_files(Execution& execution) {
  const comm::Group& group = execution.group();
  const UnreadCommit what = remaining_.unread.front();
  const bool is_known = ledger_.known().find(what.commit.id).has_value();
  const std::uint64_t bytes = group.max(is_known ? unread_files_.unread_bytes(what) : 0);
  const comm::Group patient = group.with_timeout(group.timeout() * timeout_factor(bytes));
  ReadResult read;
  if (is_known) {
    read = unread_files_.read_commit(what, [&] {
      pause_.wait_while_paused();
      return execution.should_yield();
    });
  }
  const comm::VoteResult ballot =
      patient.vote_with_request(read.first_failure(), read.has_more && !execution.is_deferred_work_dropped());
  if (ballot.is_requested && !ballot.failure) return;
  // The parity may still be damaged. It is read first, because protecting again needs its space.
  if (what.is_container && group.all(is_known && !read.has_more && !read.has_damaged_container)) {
    ledger_.mark_verified(what.commit.id);
    runner_.retire_superseded(execution);
  }
  if (ballot.failure) handle_damage(execution, what, read, *ballot.failure);
  if (ballot.is_requested && what.is_container && group.all(!read.has_damaged_container))
    return;  // continue with the container later
  remaining_.unread.pop_front();
  unread_files_.reset();
}

/// Removes the protections that contain the damaged files, and protects the opened commit again.
void DeferredWork::handle_damage(Execution& execution, const UnreadCommit& unread, const ReadResult& read,
                                 const Failure& first) {
  const CommitHead& commit = unread.commit;
  const comm::Group& group = execution.group();
  const bool is_opened = commit.id == remaining_.opened.id;
  if (is_opened && group.any(read.has_damaged_container)) return handle_damaged_container(execution, commit, first);
  ledger_.set_unprotected(commit.id);
  if (!is_opened) ledger_.require_survey();
  observers_.notify(&CommitObserver::on_damaged, commit, first);
  const std::uint64_t files = group.sum(read.failures.size());
  std::string so = compose(
      "{} is an older checkpoint that can no longer be relied on; the next create checks the stores again and keeps "
      "what can be recovered",
      commit.tag);
  if (is_opened) so = after_damaged_parity(execution, commit);
  if (!group.is_root()) return;
  log_.warning(compose("a check in the background found damage: {}{}; {}; check the memory or disk of rank {}'s node",
                       to_string(first), files > 1 ? compose(" and {} more", files - 1) : "", so, first.rank));
}

/// Protects the opened commit again, if that is possible. Returns what became of it.
std::string DeferredWork::after_damaged_parity(Execution& execution, const CommitHead& commit) {
  const comm::Group& group = execution.group();
  if (!group.all(ledger_.known().find(commit.id).has_value())) return compose("{} is not needed any more", commit.tag);
  if (commit.world_size != group.world_size()) {
    return compose("{} is no longer protected against the loss of a node{}", commit.tag,
                   is_scheduled() ? "; the next checkpoint will be" : "");
  }
  if (!is_scheduled()) {
    return compose(
        "{} is no longer protected against the loss of a node; call wait(\"{}\", protected) to protect it again",
        commit.tag, commit.tag);
  }
  const auto failure = protect_with_space(execution, commit);
  return failure ? protect_.failure_warning(commit, *failure, 1)
                 : compose("{} is protected again ({})", commit.tag, to_string(protect_.scheme()));
}

/// The application has loaded intact data, but the stored container is damaged. Keeps everything that the commit can be
/// rebuilt from, and older commits.
void DeferredWork::handle_damaged_container(Execution& execution, const CommitHead& commit, const Failure& first) {
  remaining_.must_drop_copies = false;
  if (std::exchange(remaining_.must_protect, false)) {
    drop_stages(commit, first);
    execution.mark_opened_protected();
  }
  ledger_.require_survey();
  observers_.notify(&CommitObserver::on_damaged, commit, first);
  if (!execution.group().is_root()) return;
  log_.warning(compose(
      "background verification found damage in a part of {} that this program did not load: {}; what it loaded is "
      "intact. "
      "The next open rebuilds the container, or opens an older checkpoint; check the memory or disk of rank {}'s node",
      commit.tag, to_string(first), first.rank));
}

/// The copies on former nodes protect the commit until it is protected at its new location. If there is no space for
/// both, the former copies go.
std::optional<Failure> DeferredWork::protect_with_space(Execution& execution, const CommitHead& commit) {
  const comm::Group& group = execution.group();
  const std::size_t stage = stages_.index_of(Level::protected_);
  execution.set_sending(true);
  std::optional<Failure> failure = runner_.run_stage(execution, stage, commit, Reason::required);
  if (!failure || failure->code == ErrorCode::no_space) {
    const bool room_was_made = drop_former_copies(group, commit);
    if (failure && room_was_made) {
      if (group.is_root()) {
        log_.info(
            compose("no room to protect {} beside the copies on its former nodes; removing them and "
                    "retrying",
                    commit.tag));
      }
      failure = runner_.run_stage(execution, stage, commit, Reason::required);
    }
  }
  execution.set_sending(false);
  if (failure) drop_stages(commit, *failure);
  else runner_.retire_superseded(execution);
  return failure;
}

void DeferredWork::drop_stages(const CommitHead& commit, const Failure& failure) {
  CommitProgress progress = stages_.progress_of(commit);
  progress.reason = Reason::required;
  StageProgress& stage = progress.stages[stages_.index_of(Level::protected_)];
  stage.failure = failure;
  observers_.notify(&CommitObserver::on_stage_dropped, progress, stage);
}

/// Copies on nodes that their owners have left only cost space; they go at the latest with their commit. Returns
/// whether any rank removed one.
bool DeferredWork::drop_former_copies(const comm::Group& group, const CommitHead& commit) {
  std::size_t dropped = 0;
  const auto failure = attempt([&] { dropped = store_.retirement.remove_adopted(commit.id); });
  if (failure) log_.debug(compose("former copies of {} could not be removed: {}", commit.tag, to_string(*failure)));
  return group.any(dropped != 0);
}

}  // namespace kedge::pipeline

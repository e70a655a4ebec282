#include "commits/ledger.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "base/invariant.hpp"
#include "commits/head_check.hpp"

namespace kedge::commits {
namespace {

constexpr std::size_t kFlushedOutputsKnown = 64;

}  // namespace

bool RetentionPlan::is_kept(const Id128& commit_id, const Id128& protection_id) const {
  if (keeps_all) return true;
  const auto found = kept_protections.find(commit_id);
  if (found == kept_protections.end()) return false;
  return protection_id.is_none() || found->second.is_none() || found->second == protection_id;
}

KnownCommits Ledger::known() const {
  const std::lock_guard guard(mutex_);
  return known_;
}

template <class Change>
void Ledger::change_entry(const Id128& commit_id, const Change& change) {
  const std::lock_guard guard(mutex_);
  for (CommitEntry& entry : known_.entries) {
    if (entry.commit.id == commit_id) change(entry);
  }
}

void Ledger::apply_survey(SurveyResult found) {
  const std::lock_guard guard(mutex_);
  known_.entries = std::move(found.entries);
  known_.undecided_commits = std::move(found.undecided);
  known_.outputs_of_others = std::move(found.outputs_of_others);
  generations_.raise_to(found.highest_generation);
  known_.commits_exist = known_.commits_exist || found.commits_exist;
  known_.survey_state = SurveyState::done;
  check_invariants();
}

void Ledger::require_survey() {
  const std::lock_guard guard(mutex_);
  if (known_.survey_state == SurveyState::done) known_.survey_state = SurveyState::stale;
}

void Ledger::add_snapshot(const CommitHead& head) {
  const std::lock_guard guard(mutex_);
  invariant(!known_.snapshot, "one commit at most is not sealed yet");
  known_.snapshot = head;
}

void Ledger::drop_snapshot() {
  const std::lock_guard guard(mutex_);
  invariant(known_.snapshot.has_value(), "a snapshot is dropped once");
  known_.snapshot.reset();
}

void Ledger::add_commit(const CommitHead& head) {
  const std::lock_guard guard(mutex_);
  invariant(!known_.snapshot || known_.snapshot->id == head.id, "a snapshot is sealed before the next commit");
  known_.snapshot.reset();
  invariant(known_.is_surveyed(), "storage was surveyed before a commit");
  invariant(head.generation <= generations_.highest(), "a commit's generation was taken from the ledger");
  invariant(known_.entries.empty() || head.generation > known_.entries.front().commit.generation,
            "a commit is newer than all before");
  invariant(head.parent_id == known_.parent_id, "a commit's parent is the one opened or committed before");
  if (!head.is_output) {
    known_.parent_id = head.id;
    known_.unverified_commit = {};
    known_.undecided_commits.clear();
    known_.lost = false;
    known_.commits_exist = true;
  }
  known_.opened_output = {};
  add_entry({head, Level::local, {}, false});
}

void Ledger::mark_opened(const CommitHead& head, bool persistent, bool proven) {
  const std::lock_guard guard(mutex_);
  invariant(known_.is_surveyed(), "storage was surveyed before an open");
  invariant(excluded_.reason(head.id).empty(), "an excluded commit is not opened");
  known_.opened_output = head.is_output ? head.id : Id128{};
  known_.unverified_commit = proven ? Id128{} : head.id;
  if (!head.is_output) {
    known_.parent_id = head.id;
    known_.lost = false;
    known_.commits_exist = true;
  }
  const bool is_output_of_others = std::ranges::find(known_.outputs_of_others, head.id, &CommitHead::id) !=
                                   known_.outputs_of_others.end();  // this start cannot flush it
  if (!known_.find(head.id) && !is_output_of_others) add_entry({head, Level::local, {}, persistent});
}

void Ledger::mark_verified(const Id128& commit_id) {
  const std::lock_guard guard(mutex_);
  if (known_.unverified_commit == commit_id) known_.unverified_commit = {};
}

void Ledger::set_parent(const Id128& commit_id) {
  const std::lock_guard guard(mutex_);
  known_.parent_id = commit_id;
}

void Ledger::set_protected(const Id128& commit_id, const Id128& protection_id) {
  invariant(!protection_id.is_none(), "a protection has an id");
  change_entry(commit_id, [&](CommitEntry& entry) {
    entry.in_stores = Level::protected_;
    entry.protection_id = protection_id;
  });
}

void Ledger::prefer_protection(const Id128& commit_id, const Id128& protection_id) {
  change_entry(commit_id, [&](CommitEntry& entry) { entry.protection_id = protection_id; });
}

void Ledger::set_unprotected(const Id128& commit_id) {
  change_entry(commit_id, [&](CommitEntry& entry) { entry.in_stores = Level::local; });
}

void Ledger::set_persistent(const Id128& commit_id, bool persistent) {
  change_entry(commit_id, [&](CommitEntry& entry) { entry.persistent = persistent; });
}

void Ledger::drop_damaged(const Id128& commit_id) {
  const std::lock_guard guard(mutex_);
  const auto is_it = [&](const CommitEntry& entry) { return entry.commit.id == commit_id; };
  const auto is_checkpoint = [&](const CommitEntry& entry) { return is_it(entry) && !entry.commit.is_output; };
  known_.lost = known_.lost || std::ranges::any_of(known_.entries, is_checkpoint);
  known_.unverified_commit = {};
  known_.survey_state = SurveyState::needed;
  std::erase_if(known_.entries, is_it);
  std::erase_if(known_.flushed_outputs, is_it);
}

void Ledger::exclude_damaged(const Id128& commit_id, std::string why) {
  exclude(commit_id, std::move(why));
  drop_damaged(commit_id);
}

void Ledger::mark_lost() {
  const std::lock_guard guard(mutex_);
  known_.lost = true;
}

void Ledger::mark_prefix_changed() {
  const std::lock_guard guard(mutex_);
  ++known_.prefix_changes;
}

void Ledger::discard_newer(std::uint64_t generation) {
  const std::lock_guard guard(mutex_);
  ++known_.prefix_changes;
  std::erase_if(known_.entries, [&](const CommitEntry& entry) {
    return !entry.commit.is_output && entry.commit.generation > generation;
  });
}

void Ledger::set_commits_exist() {
  const std::lock_guard guard(mutex_);
  known_.commits_exist = true;
}

void Ledger::clear() {
  const std::lock_guard guard(mutex_);
  invariant(!known_.lost, "commits that could not be opened are not cleared");
  known_.commits_exist = false;
}

RetentionPlan Ledger::retire_superseded(std::uint32_t store_keep) {
  const std::lock_guard guard(mutex_);
  RetentionPlan plan;
  plan.keeps_all = !known_.is_surveyed() || !known_.unverified_commit.is_none();
  if (plan.keeps_all) return plan;
  for (const Id128& commit_id : known_.undecided_commits) plan.kept_protections[commit_id] = {};
  for (const CommitHead& output : known_.outputs_of_others) plan.kept_protections[output.id] = {};
  for (const Id128& in_use : {known_.parent_id, known_.opened_output}) {
    if (!in_use.is_none()) plan.kept_protections[in_use] = {};
  }
  if (!known_.entries.empty()) plan.newest_generation = known_.entries.front().commit.generation;
  const std::vector<bool> stay = known_.select_kept(store_keep);
  std::vector<CommitEntry> remaining;
  for (std::size_t i = 0; i < known_.entries.size(); ++i) {
    const CommitEntry& entry = known_.entries[i];
    if (!stay[i] && entry.commit.id != known_.parent_id && entry.commit.id != known_.opened_output) {
      if (entry.commit.is_output) remember_output(entry);
      continue;
    }
    plan.kept_protections[entry.commit.id] = entry.protection_id;
    remaining.push_back(entry);
  }
  known_.entries = std::move(remaining);
  check_invariants();
  return plan;
}

/// One leaves the stores as soon as it is on the prefix, and may still be asked for.
void Ledger::remember_output(const CommitEntry& output) {
  std::vector<CommitEntry>& known = known_.flushed_outputs;
  const auto is_it = [&](const CommitEntry& other) { return other.commit.id == output.commit.id; };
  if (std::ranges::any_of(known, is_it)) return;
  const auto is_older = [&](const CommitEntry& other) { return is_newer(output.commit, other.commit); };
  known.insert(std::ranges::find_if(known, is_older), output);
  if (known.size() > kFlushedOutputsKnown) known.pop_back();
}

void Ledger::add_entry(CommitEntry entry) {
  const auto place = std::ranges::find_if(
      known_.entries, [&](const CommitEntry& other) { return is_newer(entry.commit, other.commit); });
  known_.entries.insert(place, std::move(entry));
  check_invariants();
}

/// Cheap, because there are few more entries than kept commits.
void Ledger::check_invariants() const {
  for (std::size_t i = 0; i < known_.entries.size(); ++i) {
    const CommitEntry& entry = known_.entries[i];
    invariant(i == 0 || is_newer(known_.entries[i - 1].commit, entry.commit), "entries are newest first, each once");
    invariant(entry.in_stores == Level::local || entry.in_stores == Level::protected_,
              "a commit in the stores is local or protected");
    invariant(entry.commit.generation <= generations_.highest(), "the ledger has seen every generation that it lists");
  }
}

}  // namespace kedge::commits

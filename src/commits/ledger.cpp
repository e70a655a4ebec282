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

bool RetentionPlan::keeps(const Id128& commit_id, const Id128& protection_id) const {
  if (keeps_all) return true;
  const auto found = kept.find(commit_id);
  if (found == kept.end()) return false;
  return protection_id.is_none() || found->second.is_none() || found->second == protection_id;
}

KnownCommits Ledger::known() const {
  const std::lock_guard guard(mutex_);
  return known_;
}

template <class Change>
void Ledger::change(const Id128& commit_id, const Change& change) {
  const std::lock_guard guard(mutex_);
  for (Entry& entry : known_.entries) {
    if (entry.commit.id == commit_id) change(entry);
  }
}

void Ledger::survey(SurveyResult found) {
  const std::lock_guard guard(mutex_);
  known_.entries = std::move(found.entries);
  known_.undecided = std::move(found.undecided);
  known_.outputs_of_others = std::move(found.outputs_of_others);
  generations_.raise(found.highest_generation);
  known_.commits_exist = known_.commits_exist || found.commits_exist;
  known_.survey = SurveyState::done;
  check();
}

void Ledger::require_survey() {
  const std::lock_guard guard(mutex_);
  if (known_.survey == SurveyState::done) known_.survey = SurveyState::stale;
}

void Ledger::take_snapshot(const CommitHead& head) {
  const std::lock_guard guard(mutex_);
  invariant(!known_.snapshot, "one commit at most is not sealed yet");
  known_.snapshot = head;
}

void Ledger::drop_snapshot() {
  const std::lock_guard guard(mutex_);
  invariant(known_.snapshot.has_value(), "a snapshot is dropped once");
  known_.snapshot.reset();
}

void Ledger::commit(const CommitHead& head) {
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
    known_.unverified = {};
    known_.undecided.clear();
    known_.lost = false;
    known_.commits_exist = true;
  }
  known_.opened_output = {};
  add({head, Level::local, {}, false});
}

void Ledger::open(const CommitHead& head, bool persistent, bool proven) {
  const std::lock_guard guard(mutex_);
  invariant(known_.is_surveyed(), "storage was surveyed before an open");
  invariant(excluded_.why(head.id).empty(), "an excluded commit is not opened");
  known_.opened_output = head.is_output ? head.id : Id128{};
  known_.unverified = proven ? Id128{} : head.id;
  if (!head.is_output) {
    known_.parent_id = head.id;
    known_.lost = false;
    known_.commits_exist = true;
  }
  const bool is_output_of_others = std::ranges::find(known_.outputs_of_others, head.id, &CommitHead::id) !=
                                   known_.outputs_of_others.end();  // this start cannot flush it
  if (!known_.find(head.id) && !is_output_of_others) add({head, Level::local, {}, persistent});
}

void Ledger::confirm(const Id128& commit_id) {
  const std::lock_guard guard(mutex_);
  if (known_.unverified == commit_id) known_.unverified = {};
}

void Ledger::set_parent(const Id128& commit_id) {
  const std::lock_guard guard(mutex_);
  known_.parent_id = commit_id;
}

void Ledger::protect(const Id128& commit_id, const Id128& protection_id) {
  invariant(!protection_id.is_none(), "a protection has an id");
  change(commit_id, [&](Entry& entry) {
    entry.in_stores = Level::protected_;
    entry.protection_id = protection_id;
  });
}

void Ledger::prefer_protection(const Id128& commit_id, const Id128& protection_id) {
  change(commit_id, [&](Entry& entry) { entry.protection_id = protection_id; });
}

void Ledger::set_unprotected(const Id128& commit_id) {
  change(commit_id, [&](Entry& entry) { entry.in_stores = Level::local; });
}

void Ledger::set_persistent(const Id128& commit_id, bool persistent) {
  change(commit_id, [&](Entry& entry) { entry.persistent = persistent; });
}

void Ledger::drop_damaged(const Id128& commit_id) {
  const std::lock_guard guard(mutex_);
  const auto is_it = [&](const Entry& entry) { return entry.commit.id == commit_id; };
  const auto is_checkpoint = [&](const Entry& entry) { return is_it(entry) && !entry.commit.is_output; };
  known_.lost = known_.lost || std::ranges::any_of(known_.entries, is_checkpoint);
  known_.unverified = {};
  known_.survey = SurveyState::needed;
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
  std::erase_if(known_.entries,
                [&](const Entry& entry) { return !entry.commit.is_output && entry.commit.generation > generation; });
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

RetentionPlan Ledger::retire(std::uint32_t keep) {
  const std::lock_guard guard(mutex_);
  RetentionPlan plan;
  plan.keeps_all = !known_.is_surveyed() || !known_.unverified.is_none();
  if (plan.keeps_all) return plan;
  for (const Id128& commit_id : known_.undecided) plan.kept[commit_id] = {};
  for (const CommitHead& output : known_.outputs_of_others) plan.kept[output.id] = {};
  for (const Id128& in_use : {known_.parent_id, known_.opened_output}) {
    if (!in_use.is_none()) plan.kept[in_use] = {};
  }
  if (!known_.entries.empty()) plan.newest = known_.entries.front().commit.generation;
  const std::vector<bool> stay = known_.select_kept(keep);
  std::vector<Entry> remaining;
  for (std::size_t i = 0; i < known_.entries.size(); ++i) {
    const Entry& entry = known_.entries[i];
    if (!stay[i] && entry.commit.id != known_.parent_id && entry.commit.id != known_.opened_output) {
      if (entry.commit.is_output) remember(entry);
      continue;
    }
    plan.kept[entry.commit.id] = entry.protection_id;
    remaining.push_back(entry);
  }
  known_.entries = std::move(remaining);
  check();
  return plan;
}

/// One leaves the stores as soon as it is on the prefix, and may still be asked for.
void Ledger::remember(const Entry& output) {
  std::vector<Entry>& known = known_.flushed_outputs;
  const auto is_it = [&](const Entry& other) { return other.commit.id == output.commit.id; };
  if (std::ranges::any_of(known, is_it)) return;
  const auto is_older = [&](const Entry& other) { return is_newer(output.commit, other.commit); };
  known.insert(std::ranges::find_if(known, is_older), output);
  if (known.size() > kFlushedOutputsKnown) known.pop_back();
}

void Ledger::add(Entry entry) {
  const auto place =
      std::ranges::find_if(known_.entries, [&](const Entry& other) { return is_newer(entry.commit, other.commit); });
  known_.entries.insert(place, std::move(entry));
  check();
}

/// Cheap, because there are few more entries than kept commits.
void Ledger::check() const {
  for (std::size_t i = 0; i < known_.entries.size(); ++i) {
    const Entry& entry = known_.entries[i];
    invariant(i == 0 || is_newer(known_.entries[i - 1].commit, entry.commit), "entries are newest first, each once");
    invariant(entry.in_stores == Level::local || entry.in_stores == Level::protected_,
              "a commit in the stores is local or protected");
    invariant(entry.commit.generation <= generations_.highest(), "the ledger has seen every generation that it lists");
  }
}

}  // namespace kedge::commits

#include "commits/ledger.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "base/invariant.hpp"
#include "base/text.hpp"
#include "commits/head_check.hpp"
#include "commits/retention.hpp"
#include "kedge/error.hpp"

namespace kedge::commits {
bool RetentionPlan::keeps(const Id128& commit_id, const Id128& protection_id) const {
  if (keeps_all) return true;
  const auto found = kept.find(commit_id);
  if (found == kept.end()) return false;
  return protection_id.is_none() || found->second.is_none() || found->second == protection_id;
}

bool Ledger::is_surveyed() const {
  const std::lock_guard guard(mutex_);
  return surveyed_;
}

bool Ledger::must_survey() const {
  const std::lock_guard guard(mutex_);
  return !surveyed_ || survey_required_;
}

std::vector<Entry> Ledger::entries() const {
  const std::lock_guard guard(mutex_);
  return entries_;
}

std::optional<Entry> Ledger::newest() const {
  const std::lock_guard guard(mutex_);
  const auto found = std::ranges::find_if(entries_, [](const Entry& entry) { return !entry.commit.is_output; });
  return found == entries_.end() ? std::nullopt : std::optional(*found);
}

std::optional<Entry> Ledger::find(std::string_view tag) const {
  const std::lock_guard guard(mutex_);
  const Entry* entry = find_known(tag);
  return entry == nullptr ? std::nullopt : std::optional(*entry);
}

bool Ledger::has_reached(const Id128& commit_id, Level level) const {
  const std::lock_guard guard(mutex_);
  const auto is_it = [&](const Entry& entry) { return entry.commit.id == commit_id && entry.level() >= level; };
  return std::ranges::any_of(entries_, is_it) || std::ranges::any_of(flushed_outputs_, is_it);
}

std::optional<Entry> Ledger::find(const Id128& commit_id) const {
  const std::lock_guard guard(mutex_);
  const Entry* entry = find_entry(commit_id);
  return entry == nullptr ? std::nullopt : std::optional(*entry);
}

std::optional<CommitHead> Ledger::snapshot() const {
  const std::lock_guard guard(mutex_);
  return snapshot_;
}

std::optional<CommitHead> Ledger::newest_of(std::string_view tag) const {
  const std::lock_guard guard(mutex_);
  if (snapshot_ && snapshot_->tag == tag) return snapshot_;
  const Entry* entry = find_known(tag);
  return entry == nullptr ? std::nullopt : std::optional(entry->commit);
}

Level Ledger::level(std::string_view tag) const {
  const std::lock_guard guard(mutex_);
  if (snapshot_ && snapshot_->tag == tag) return Level::snapshot;
  const Entry* entry = find_known(tag);
  return entry == nullptr ? Level::none : entry->level();
}

Id128 Ledger::parent_id() const {
  const std::lock_guard guard(mutex_);
  return parent_id_;
}

bool Ledger::commits_exist() const {
  const std::lock_guard guard(mutex_);
  return commits_exist_;
}

bool Ledger::is_lost() const {
  const std::lock_guard guard(mutex_);
  return lost_;
}

std::string Ledger::why_excluded(const Id128& commit_id) const {
  const std::lock_guard guard(mutex_);
  const auto found = excluded_.find(commit_id);
  return found == excluded_.end() ? "" : found->second;
}

std::set<Id128> Ledger::excluded() const {
  const std::lock_guard guard(mutex_);
  std::set<Id128> ids;
  for (const auto& [id, why] : excluded_) ids.insert(id);
  return ids;
}

std::vector<Id128> Ledger::ids_to_keep(std::uint32_t keep) const {
  const std::lock_guard guard(mutex_);
  const std::vector<bool> stay = stays(keep);
  std::vector<Id128> ids;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (stay[i]) ids.push_back(entries_[i].commit.id);
  }
  return ids;
}

std::uint64_t Ledger::take_generation() {
  const std::lock_guard guard(mutex_);
  if (highest_generation_ >= kGenerationMax) {
    throw Error(
        ErrorCode::corrupt,
        compose(
            "the generation {} was seen in the stores or on the prefix, and no higher one is possible: the file that "
            "has it must be damaged; find it with kedge ls, remove it, and start again",
            highest_generation_));
  }
  return ++highest_generation_;
}

void Ledger::raise_generation(std::uint64_t seen) {
  const std::lock_guard guard(mutex_);
  highest_generation_ = std::max(highest_generation_, seen);
}

std::uint64_t Ledger::highest_generation() const {
  const std::lock_guard guard(mutex_);
  return highest_generation_;
}

void Ledger::survey(SurveyResult found) {
  const std::lock_guard guard(mutex_);
  entries_ = std::move(found.entries);
  undecided_ = std::move(found.undecided);
  outputs_of_others_ = std::move(found.outputs_of_others);
  highest_generation_ = std::max(highest_generation_, found.highest_generation);
  commits_exist_ = commits_exist_ || found.commits_exist;
  surveyed_ = true;
  survey_required_ = false;
  check();
}

void Ledger::require_survey() {
  const std::lock_guard guard(mutex_);
  survey_required_ = true;
}

void Ledger::take_snapshot(const CommitHead& head) {
  const std::lock_guard guard(mutex_);
  invariant(!snapshot_, "one commit at most is not sealed yet");
  snapshot_ = head;
}

void Ledger::drop_snapshot() {
  const std::lock_guard guard(mutex_);
  invariant(snapshot_.has_value(), "a snapshot is dropped once");
  snapshot_.reset();
}

void Ledger::commit(const CommitHead& head) {
  const std::lock_guard guard(mutex_);
  invariant(!snapshot_ || snapshot_->id == head.id, "a snapshot is sealed before the next commit");
  snapshot_.reset();
  invariant(surveyed_, "storage was surveyed before a commit");
  invariant(head.generation <= highest_generation_, "a commit's generation was taken from the ledger");
  invariant(entries_.empty() || head.generation > entries_.front().commit.generation,
            "a commit is newer than all before");
  invariant(head.parent_id == parent_id_, "a commit's parent is the one opened or committed before");
  if (!head.is_output) {
    parent_id_ = head.id;
    unproven_ = {};
    undecided_.clear();
    lost_ = false;
    commits_exist_ = true;
  }
  opened_output_ = {};
  add({head, Level::local, {}, false});
}

void Ledger::open(const CommitHead& head, bool persistent, bool proven) {
  const std::lock_guard guard(mutex_);
  invariant(surveyed_, "storage was surveyed before an open");
  invariant(!excluded_.contains(head.id), "an excluded commit is not opened");
  opened_output_ = head.is_output ? head.id : Id128{};
  unproven_ = proven ? Id128{} : head.id;
  if (!head.is_output) {
    parent_id_ = head.id;
    lost_ = false;
    commits_exist_ = true;
  }
  if (find_entry(head.id) == nullptr) add({head, Level::local, {}, persistent});
}

void Ledger::prove(const Id128& commit_id) {
  const std::lock_guard guard(mutex_);
  if (unproven_ == commit_id) unproven_ = {};
}

void Ledger::set_parent(const Id128& commit_id) {
  const std::lock_guard guard(mutex_);
  parent_id_ = commit_id;
}

void Ledger::protect(const Id128& commit_id, const Id128& protection_id) {
  const std::lock_guard guard(mutex_);
  invariant(!protection_id.is_none(), "a protection has an id");
  Entry* entry = find_entry(commit_id);
  if (entry == nullptr) return;
  entry->in_stores = Level::protected_;
  entry->protection_id = protection_id;
}

void Ledger::prefer_protection(const Id128& commit_id, const Id128& protection_id) {
  const std::lock_guard guard(mutex_);
  Entry* entry = find_entry(commit_id);
  if (entry != nullptr) entry->protection_id = protection_id;
}

void Ledger::set_unprotected(const Id128& commit_id) {
  const std::lock_guard guard(mutex_);
  Entry* entry = find_entry(commit_id);
  if (entry != nullptr) entry->in_stores = Level::local;
}

void Ledger::set_persistent(const Id128& commit_id, bool persistent) {
  const std::lock_guard guard(mutex_);
  Entry* entry = find_entry(commit_id);
  if (entry != nullptr) entry->persistent = persistent;
}

bool Ledger::has_unverified() const {
  const std::lock_guard guard(mutex_);
  return !unproven_.is_none();
}

void Ledger::drop_damaged(const Id128& commit_id) {
  const std::lock_guard guard(mutex_);
  const auto is_it = [&](const Entry& entry) { return entry.commit.id == commit_id; };
  const auto is_checkpoint = [&](const Entry& entry) { return is_it(entry) && !entry.commit.is_output; };
  lost_ = lost_ || std::ranges::any_of(entries_, is_checkpoint);
  unproven_ = {};
  surveyed_ = false;
  std::erase_if(entries_, is_it);
  std::erase_if(flushed_outputs_, is_it);
}

void Ledger::exclude_damaged(const Id128& commit_id, std::string why) {
  exclude(commit_id, std::move(why));
  drop_damaged(commit_id);
}

void Ledger::exclude(const Id128& commit_id, std::string why) {
  const std::lock_guard guard(mutex_);
  excluded_[commit_id] = std::move(why);
}

void Ledger::lose() {
  const std::lock_guard guard(mutex_);
  lost_ = true;
}

void Ledger::mark_prefix_changed() {
  const std::lock_guard guard(mutex_);
  ++tier_changes_;
}

std::uint64_t Ledger::prefix_changes() const {
  const std::lock_guard guard(mutex_);
  return tier_changes_;
}

void Ledger::discard_newer(std::uint64_t generation) {
  const std::lock_guard guard(mutex_);
  ++tier_changes_;
  std::erase_if(entries_,
                [&](const Entry& entry) { return !entry.commit.is_output && entry.commit.generation > generation; });
}

void Ledger::set_commits_exist() {
  const std::lock_guard guard(mutex_);
  commits_exist_ = true;
}

void Ledger::clear() {
  const std::lock_guard guard(mutex_);
  invariant(!lost_, "commits that could not be opened are not cleared");
  commits_exist_ = false;
}

RetentionPlan Ledger::retire(std::uint32_t keep) {
  const std::lock_guard guard(mutex_);
  RetentionPlan plan;
  plan.keeps_all = !surveyed_ || !unproven_.is_none();
  if (plan.keeps_all) return plan;
  for (const Id128& commit_id : undecided_) plan.kept[commit_id] = {};
  for (const CommitHead& output : outputs_of_others_) plan.kept[output.id] = {};
  for (const Id128& in_use : {parent_id_, opened_output_}) {
    if (!in_use.is_none()) plan.kept[in_use] = {};
  }
  if (!entries_.empty()) plan.newest = entries_.front().commit.generation;
  const std::vector<bool> stay = stays(keep);
  std::vector<Entry> remaining;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const Entry& entry = entries_[i];
    if (!stay[i] && entry.commit.id != parent_id_ && entry.commit.id != opened_output_) {
      if (entry.commit.is_output) remember(entry);
      continue;
    }
    plan.kept[entry.commit.id] = entry.protection_id;
    remaining.push_back(entry);
  }
  entries_ = std::move(remaining);
  check();
  return plan;
}

const Entry* Ledger::find_entry(std::string_view tag) const {
  const auto found = std::ranges::find_if(entries_, [&](const Entry& entry) { return entry.commit.tag == tag; });
  return found == entries_.end() ? nullptr : &*found;
}

const Entry* Ledger::find_known(std::string_view tag) const {
  const auto is_of_tag = [&](const Entry& entry) { return entry.commit.tag == tag; };
  const Entry* entry = find_entry(tag);
  const auto flushed = std::ranges::find_if(flushed_outputs_, is_of_tag);
  if (flushed == flushed_outputs_.end()) return entry;
  return entry == nullptr || is_newer(flushed->commit, entry->commit) ? &*flushed : entry;
}

const Entry* Ledger::find_entry(const Id128& commit_id) const {
  const auto found = std::ranges::find_if(entries_, [&](const Entry& entry) { return entry.commit.id == commit_id; });
  return found == entries_.end() ? nullptr : &*found;
}

Entry* Ledger::find_entry(const Id128& commit_id) {
  return const_cast<Entry*>(std::as_const(*this).find_entry(commit_id));  // NOLINT(*-const-cast)
}

std::vector<bool> Ledger::stays(std::uint32_t keep) const {
  std::vector<Level> levels;
  levels.reserve(entries_.size());
  for (const Entry& entry : entries_) {
    if (!entry.commit.is_output) levels.push_back(entry.in_stores);
  }
  const std::vector<bool> checkpoints = kept(levels, keep);
  std::vector<bool> stay;
  std::size_t at = 0;
  for (const Entry& entry : entries_) stay.push_back(entry.commit.is_output ? !entry.persistent : checkpoints[at++]);
  return stay;
}

void Ledger::add(Entry entry) {
  const auto place =
      std::ranges::find_if(entries_, [&](const Entry& other) { return is_newer(entry.commit, other.commit); });
  entries_.insert(place, std::move(entry));
  check();
}

/// Cheap, because there are few more entries than kept commits.
void Ledger::check() const {
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const Entry& entry = entries_[i];
    invariant(i == 0 || is_newer(entries_[i - 1].commit, entry.commit), "entries are newest first, each once");
    invariant(entry.in_stores == Level::local || entry.in_stores == Level::protected_,
              "a commit in the stores is local or protected");
    invariant(entry.commit.generation <= highest_generation_, "the ledger has seen every generation that it lists");
  }
}

}  // namespace kedge::commits

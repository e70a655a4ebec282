#include "commits/known_commits.hpp"

#include <algorithm>
#include <cstddef>

#include "commits/head_check.hpp"
#include "commits/retention.hpp"

namespace kedge::commits {
namespace {

auto has_id(const Id128& commit_id) {
  return [commit_id](const CommitEntry& entry) { return entry.commit.id == commit_id; };
}

template <class Predicate>
std::optional<CommitEntry> first_of(const std::vector<CommitEntry>& entries, const Predicate& predicate) {
  const auto found = std::ranges::find_if(entries, predicate);
  return found == entries.end() ? std::nullopt : std::optional(*found);
}

}  // namespace

std::optional<CommitEntry> KnownCommits::newest_checkpoint() const {
  return first_of(entries, [](const CommitEntry& entry) { return !entry.commit.is_output; });
}

std::optional<CommitEntry> KnownCommits::find(std::string_view tag) const {
  const auto is_of_tag = [&](const CommitEntry& entry) { return entry.commit.tag == tag; };
  const std::optional<CommitEntry> entry = first_of(entries, is_of_tag);
  const std::optional<CommitEntry> flushed = first_of(flushed_outputs, is_of_tag);
  if (!flushed) return entry;
  return !entry || is_newer(flushed->commit, entry->commit) ? flushed : entry;
}

std::optional<CommitEntry> KnownCommits::find(const Id128& commit_id) const {
  return first_of(entries, has_id(commit_id));
}

std::optional<CommitHead> KnownCommits::find_newest(std::string_view tag) const {
  if (snapshot && snapshot->tag == tag) return snapshot;
  const std::optional<CommitEntry> entry = find(tag);
  return entry ? std::optional(entry->commit) : std::nullopt;
}

Level KnownCommits::level(std::string_view tag) const {
  if (snapshot && snapshot->tag == tag) return Level::snapshot;
  const std::optional<CommitEntry> entry = find(tag);
  return entry ? entry->level() : Level::none;
}

bool KnownCommits::has_reached(const Id128& commit_id, Level level) const {
  const auto has = [&](const CommitEntry& entry) { return entry.commit.id == commit_id && entry.level() >= level; };
  return std::ranges::any_of(entries, has) || std::ranges::any_of(flushed_outputs, has);
}

std::vector<CommitHead> KnownCommits::outputs_to_flush() const {
  std::vector<CommitHead> outputs;
  for (const CommitEntry& entry : entries) {
    if (entry.commit.is_output && !entry.persistent) outputs.insert(outputs.begin(), entry.commit);
  }
  return outputs;
}

std::vector<CommitHead> KnownCommits::unflushed_outputs() const {
  std::vector<CommitHead> outputs = outputs_to_flush();
  outputs.insert(outputs.end(), outputs_of_others.begin(), outputs_of_others.end());
  std::ranges::sort(outputs, {}, &CommitHead::generation);
  return outputs;
}

std::vector<bool> KnownCommits::select_kept(std::uint32_t store_keep) const {
  std::vector<Level> levels;
  levels.reserve(entries.size());
  for (const CommitEntry& entry : entries) {
    if (!entry.commit.is_output) levels.push_back(entry.in_stores);
  }
  const std::vector<bool> checkpoints = select_by_level(levels, store_keep);
  std::vector<bool> stay;
  std::size_t at = 0;
  for (const CommitEntry& entry : entries)
    stay.push_back(entry.commit.is_output ? !entry.persistent : checkpoints[at++]);
  return stay;
}

std::vector<Id128> KnownCommits::ids_to_keep(std::uint32_t store_keep) const {
  const std::vector<bool> stay = select_kept(store_keep);
  std::vector<Id128> ids;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (stay[i]) ids.push_back(entries[i].commit.id);
  }
  return ids;
}

}  // namespace kedge::commits

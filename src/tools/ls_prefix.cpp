// Lists a prefix's checkpoints by run, newest first.
#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

#include "base/attempt.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "persist/tags.hpp"
#include "store/failed_flush.hpp"
#include "tools/ls.hpp"
#include "tools/node_stores.hpp"
#include "tools/text_format.hpp"
#include "tools/unflushed_commits.hpp"

namespace kedge::tools {
namespace {

using persist::TagEntry;

// Two runs may have the same name, without a common history.
struct RunGroup {
  std::string run;
  Id128 run_id;
  std::vector<const TagEntry*> entries;  // newest first
};

std::vector<RunGroup> by_run(const std::vector<TagEntry>& entries) {
  std::map<std::pair<std::string, Id128>, RunGroup> groups;
  for (const TagEntry& entry : entries) {
    RunGroup& group = groups[{entry.run, entry.commit.run_id}];
    group.run = entry.run;
    group.run_id = entry.commit.run_id;
    group.entries.push_back(&entry);
  }
  std::vector<RunGroup> sorted;
  sorted.reserve(groups.size());
  for (auto& [key, group] : groups) sorted.push_back(std::move(group));
  return sorted;
}

// Tags by commit id, because a parent may be another run's.
class Tags {
 public:
  explicit Tags(const std::vector<TagEntry>& entries) {
    for (const TagEntry& entry : entries) tags_.emplace(to_string(entry.commit.id), &entry.commit.tag);
  }
  // Null if not listed.
  [[nodiscard]] const std::string* find(const Id128& commit_id) const {
    const auto found = tags_.find(to_string(commit_id));
    return found == tags_.end() ? nullptr : found->second;
  }

 private:
  std::unordered_map<std::string, const std::string*> tags_;
};

std::string parent_cell(const TagEntry& entry, const Tags& tags) {
  if (entry.commit.parent_id.is_none()) return "-";
  const std::string* tag = tags.find(entry.commit.parent_id);
  return tag == nullptr ? short_id(entry.commit.parent_id) : printable(*tag);
}

/// Marks commits that retention does not remove.
std::string flags_cell(const TagEntry& entry) {
  if (entry.commit.is_output) return entry.pinned ? "output, pinned" : "output";
  return entry.pinned ? "pinned" : "-";
}

std::string table_of(const RunGroup& group, const Tags& tags) {
  Table table("lrlrrlll");
  table.add({"tag", "gen.", "time (UTC)", "ranks", "bytes", "note", "parent", "directory"});
  for (const TagEntry* entry : group.entries) {
    table.add({printable(entry->commit.tag), compose("{}", entry->commit.generation), utc_cell(entry->commit.time_ns),
               compose("{}", entry->commit.world_size), human_bytes(entry->total_bytes), flags_cell(*entry),
               parent_cell(*entry, tags), printable(entry->directory)});
  }
  return table.text();
}

std::string_view state_of(const persist::UnusableTag& unusable) {
  if (!unusable.has_manifest) return "not committed";
  if (unusable.code == ErrorCode::corrupt) return "DAMAGED";
  return "not checked";
}

std::string unusable_text(const std::vector<persist::UnusableTag>& all) {
  Table table("lll");
  for (const persist::UnusableTag& unusable : all) {
    table.add({printable(unusable.directory), std::string(state_of(unusable)), printable(unusable.reason)});
  }
  return table.text();
}

/// Printed if needed: for several runs, or for a run that no start continues.
std::string heading_of(const RunGroup& group, RunState state) {
  const std::string_view words = state_text(state);
  return fold(
      compose("run {} ({}){}{}\n", printable(group.run), to_string(group.run_id), words.empty() ? "" : ": ", words));
}

std::string text_of(const persist::TagList& list, const std::string& shown, const std::string& stores_text,
                    const RunStates& states) {
  const Tags tags(list.entries);
  std::vector<RunGroup> groups = by_run(list.entries);
  std::ranges::stable_sort(groups, {}, [&](const RunGroup& group) {
    return std::pair(group.run, states.of(group.run_id) != RunState::present);
  });
  std::string text;
  for (const RunGroup& group : groups) {
    if (!text.empty()) text += "\n";
    const RunState state = states.of(group.run_id);
    if (groups.size() > 1 || state == RunState::given_up) text += heading_of(group, state);
    text += table_of(group, tags);
  }
  if (list.entries.empty()) text = fold(compose("no checkpoints in {} yet\n", printable(shown)));
  else if (!stores_text.empty()) text += "\n";
  text += stores_text;
  if (!list.unusable_tags.empty()) text += "\n" + unusable_text(list.unusable_tags);
  return text;
}

Json entry_json(const TagEntry& entry, const Tags& tags, const RunStates& states) {
  Json json = commit_json(entry.commit);
  json["directory"] = entry.directory;
  json["parent"] = nullptr;
  json["run"] = entry.run;
  json["run_state"] = to_string(states.of(entry.commit.run_id));
  json["bytes"] = entry.total_bytes;
  json["level"] = "persistent";
  json["output"] = entry.commit.is_output;
  json["pinned"] = entry.pinned;
  if (const std::string* tag = tags.find(entry.commit.parent_id)) json["parent"] = *tag;
  return json;
}

Json json_of(const persist::TagList& list, const std::string& shown, const RunStates& states) {
  const Tags tags(list.entries);
  Json json = {{"path", shown}, {"kind", "prefix"}, {"checkpoints", Json::array()}, {"unusable", Json::array()}};
  for (const TagEntry& entry : list.entries) json["checkpoints"].push_back(entry_json(entry, tags, states));
  for (const persist::UnusableTag& unusable : list.unusable_tags) {
    json["unusable"].push_back({{"directory", unusable.directory},
                                {"committed", unusable.has_manifest},
                                {"state", unusable.code == ErrorCode::corrupt ? "damaged" : state_of(unusable)},
                                {"reason", unusable.reason}});
  }
  return json;
}

/// This node's stores that flush to the prefix.
std::vector<Store> stores_of(fs::FileSystem& file_system, const std::string& prefix) {
  std::vector<Store> stores = find_stores(file_system);
  std::erase_if(stores, [&](const Store& one) { return one.content.record.prefix != prefix; });
  return stores;
}

/// Tells where unflushed checkpoints are.
std::string stores_text(const std::vector<Store>& stores) {
  std::string text;
  for (const Store& one : stores) {
    text += fold(compose("a job that flushes here has a store on this node: kedge ls {}\n",
                         printable(shell_word(one.directory))));
  }
  return text;
}

/// Failed flushes recorded on this node, unless the commit has reached the prefix since.
std::vector<store::FailedFlush> failed_flushes(fs::FileSystem& file_system, const std::vector<Store>& stores,
                                               const persist::TagList& list) {
  std::vector<store::FailedFlush> found;
  for (const Store& one : stores) {
    (void)attempt([&] {
      const auto failed = store::read_failed_flush(file_system, one.directory);
      const auto is_it = [&](const TagEntry& entry) { return entry.commit.id == failed->commit_id; };
      if (failed && std::ranges::none_of(list.entries, is_it)) found.push_back(*failed);
    });
  }
  return found;
}

}  // namespace

Listing list_prefix(fs::FileSystem& file_system, const std::string& directory, const std::string& shown, bool json) {
  const persist::TagList list = persist::list_tags(file_system, directory);
  const std::vector<Store> stores = stores_of(file_system, directory);
  const RunStates states(file_system, directory);
  const std::vector<UnflushedCommits> news = find_unflushed(file_system, stores, list, states);
  const std::vector<store::FailedFlush> failed = failed_flushes(file_system, stores, list);
  Listing listing;
  if (json) {
    Json all = json_of(list, shown, states);
    all["stores"] = to_json(news);
    all["flushes_failed"] = Json::array();
    for (const store::FailedFlush& one : failed) all["flushes_failed"].push_back(failed_flush_json(one));
    listing.output = json_text(all);
  } else {
    listing.output =
        text_of(list, shown, list.entries.empty() ? stores_text(stores) : describe_unflushed(news), states);
    for (const store::FailedFlush& one : failed) listing.output += "\n" + failed_flush_text(one);
  }
  for (const persist::UnusableTag& unusable : list.unusable_tags) {
    if (!unusable.has_manifest) continue;
    if (unusable.code == ErrorCode::corrupt) listing.outcome = Outcome::damaged;
    else if (listing.outcome == Outcome::ok) listing.outcome = Outcome::not_checked;
  }
  return listing;
}

}  // namespace kedge::tools

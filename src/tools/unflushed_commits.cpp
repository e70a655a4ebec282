#include "tools/unflushed_commits.hpp"

#include <algorithm>
#include <cstdint>

#include "base/attempt.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "commits/commit_names.hpp"
#include "persist/prefix_runs.hpp"
#include "persist/run_record.hpp"
#include "store/sealed_commits.hpp"
#include "tools/text_format.hpp"

namespace kedge::tools {
namespace {

/// The newest generation among a run's checkpoints on the prefix; 0 if there is none.
std::uint64_t newest_generation(const persist::TagList& list, const Id128& run_id) {
  std::uint64_t newest = 0;
  for (const persist::TagEntry& entry : list.entries) {
    if (entry.commit.run_id == run_id && !entry.commit.is_output) newest = std::max(newest, entry.commit.generation);
  }
  return newest;
}

std::vector<CommitHead> missing(const std::vector<CommitHead>& in_store, const persist::TagList& list) {
  std::vector<CommitHead> found;
  bool has_checkpoint = false;
  for (const CommitHead& commit : in_store) {
    const auto is_it = [&](const persist::TagEntry& entry) { return entry.commit.id == commit.id; };
    if (std::ranges::any_of(list.entries, is_it)) continue;
    if (!commit.is_output && (has_checkpoint || commit.generation <= newest_generation(list, commit.run_id))) continue;
    has_checkpoint = has_checkpoint || !commit.is_output;
    found.push_back(commit);
  }
  return found;
}

std::string describe_unflushed(const UnflushedCommits& news) {
  std::string what;
  std::vector<CommitHead> outputs;
  for (const CommitHead& commit : news.commits) {
    if (commit.is_output) outputs.insert(outputs.begin(), commit);
    else what = compose("a newer checkpoint, {} (generation {})", commit.tag, commit.generation);
  }
  if (!outputs.empty()) {
    what += compose("{}output{} that {} not here: {}", what.empty() ? "" : ", and ", outputs.size() == 1 ? "" : "s",
                    outputs.size() == 1 ? "is" : "are", commits::list_tags(outputs));
  }
  return printable(compose("a store on this node has {}; see kedge ls {}", what, shell_word(news.directory)));
}

}  // namespace

std::vector<UnflushedCommits> find_unflushed(fs::FileSystem& file_system, const std::vector<Store>& stores,
                                             const persist::TagList& list, const RunStates& states) {
  std::vector<UnflushedCommits> news;
  for (const Store& one : stores) {
    UnflushedCommits now{one.directory, one.content.record.run_id, {}};
    if (states.of(now.run_id) != RunState::given_up) {
      (void)attempt(
          [&] { now.commits = missing(store::sealed_commits(file_system, one.directory, now.run_id), list); });
    }
    news.push_back(std::move(now));
  }
  return news;
}

std::string describe_unflushed(const std::vector<UnflushedCommits>& news) {
  std::string text;
  for (const UnflushedCommits& one : news) {
    if (!one.commits.empty()) text += fold(describe_unflushed(one) + "\n");
  }
  return text;
}

Json to_json(const std::vector<UnflushedCommits>& news) {
  Json all = Json::array();
  for (const UnflushedCommits& one : news) {
    Json newer = Json::array();
    for (const CommitHead& commit : one.commits) {
      newer.push_back({{"tag", commit.tag},
                       {"generation", commit.generation},
                       {"commit_id", to_string(commit.id)},
                       {"output", commit.is_output}});
    }
    all.push_back({{"directory", one.directory}, {"run_id", to_string(one.run_id)}, {"newer", newer}});
  }
  return all;
}

RunStates::RunStates(fs::FileSystem& file_system, const std::string& prefix) {
  const std::string records = persist::records_directory(prefix);
  (void)attempt([&] {
    if (!file_system.status(records)) return;
    for (const std::string& name : file_system.list(records)) {
      (void)attempt([&] {
        const auto record = persist::read_run_record(file_system, fs::join(records, name)).record;
        if (!record) return;
        for (const Id128& run_id : record->given_up_runs) states_.emplace(run_id, RunState::given_up);
        states_[record->run_id] = RunState::present;
      });
    }
  });
}

RunState RunStates::of(const Id128& run_id) const {
  const auto found = states_.find(run_id);
  return found == states_.end() ? RunState::unknown : found->second;
}

std::string_view state_text(RunState state) {
  switch (state) {
    case RunState::present: return "the prefix's current run";
    case RunState::given_up: return "an older run, given up by start = fresh or adopt";
    default: return {};
  }
}

std::string_view to_string(RunState state) {
  switch (state) {
    case RunState::present: return "present";
    case RunState::given_up: return "given_up";
    default: return "unknown";
  }
}

}  // namespace kedge::tools

#include "recovery/selection.hpp"

#include <algorithm>
#include <limits>

#include "base/text.hpp"

namespace kedge::recovery {
namespace {

using Candidates = std::vector<Candidate>;

/// The lowest generation that a Before excludes; everything if its tag is unknown is excluded by 0.
std::uint64_t bound_of(const Candidates& candidates, const Before& before) {
  std::uint64_t bound = 0;
  for (const auto& candidate : candidates) {
    if (candidate.commit.tag == before.tag)
      bound = candidate.commit.generation;  // newest first: the last one is the oldest
  }
  return bound;
}

std::string describe(const Candidates& candidates, const std::vector<std::size_t>& indices) {
  std::string text;
  for (const std::size_t index : indices) {
    const auto& candidate = candidates[index];
    text += compose("{}{} (generation {}): {}", text.empty() ? "" : "; ", candidate.commit.tag,
                    candidate.commit.generation, candidate.reason);
  }
  return text;
}

/// Without the run record's word: a commit that had a parent, or that another rank count made, says that there
/// were commits. A first checkpoint that a crash cut short has no parent and tells of none.
bool tells_of_commits(const Survey& survey) {
  return std::any_of(survey.candidates.begin(), survey.candidates.end(), [&](const auto& candidate) {
    const bool is_of_others = candidate.commit.world_size != survey.processes && !candidate.commit.is_output;
    return !candidate.commit.parent_id.is_none() || is_of_others;
  });
}

}  // namespace

Choice choose(const Survey& survey, const Selection& selection, bool commits_exist) {
  const Candidates& candidates = survey.candidates;
  const auto* tag = std::get_if<Tag>(&selection);
  const auto* before = std::get_if<Before>(&selection);
  const std::uint64_t bound =
      before != nullptr ? bound_of(candidates, *before) : std::numeric_limits<std::uint64_t>::max();
  Choice choice;
  for (std::size_t i = 0; i < candidates.size() && !choice.chosen; ++i) {
    if (candidates[i].commit.generation >= bound) continue;
    if (tag != nullptr ? candidates[i].commit.tag != *tag : candidates[i].commit.is_output) continue;
    if (candidates[i].recoverable) choice.chosen = i;
    else choice.skipped.push_back(i);
  }
  if (choice.chosen) return choice;
  choice.is_bound_unknown = before != nullptr && bound == 0 && (commits_exist || tells_of_commits(survey));
  // A crash during the very first checkpoint leaves pieces and no commit: that is a job that starts.
  const bool whole_run = tag == nullptr && before == nullptr;
  // A tag that was given up on purpose is not lost: it is as if its files were recycled already.
  const bool any_lost =
      std::ranges::any_of(choice.skipped, [&](std::size_t index) { return !candidates[index].discarded; });
  if ((commits_exist || tells_of_commits(survey)) && (whole_run || any_lost)) {
    choice.lost = describe(candidates, choice.skipped);
    choice.other_ranks = !choice.skipped.empty() && std::ranges::all_of(choice.skipped, [&](std::size_t index) {
      return candidates[index].commit.world_size != survey.processes;
    });
    if (!survey.unreadable.empty()) choice.lost += (choice.lost.empty() ? "" : "; ") + survey.unreadable;
    if (choice.lost.empty())
      choice.lost =
          "no container of them is on the prefix or in a node-local store of this job (a copied "
          "directory has only what was flushed)";
  }
  return choice;
}

}  // namespace kedge::recovery

#include "recovery/choose_commit.hpp"

#include <algorithm>
#include <limits>

#include "base/text.hpp"

namespace kedge::recovery {
namespace {

using Candidates = std::vector<Candidate>;

/// The lowest generation that a Before excludes; 0, which excludes everything, if its tag is unknown.
std::uint64_t bound_of(const Candidates& candidates, const Before& before) {
  std::uint64_t bound = 0;
  for (const auto& candidate : candidates) {
    if (candidate.commit.tag == before.tag)
      bound = candidate.commit.generation;  // candidates are sorted newest first, so the last match is the oldest
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

/// Evidence of earlier commits without the run record: a commit that has a parent, or was made by another number of
/// ranks. An interrupted first checkpoint has no parent and is no evidence.
bool shows_earlier_commits(const Survey& survey) {
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
    // A drain tries each number of ranks by itself.
    const bool is_for_another_start = survey.is_drained && candidates[i].commit.world_size != survey.processes;
    if (candidates[i].recoverable) choice.chosen = i;
    else if (!is_for_another_start) choice.skipped.push_back(i);
  }
  if (choice.chosen) return choice;
  choice.is_bound_unknown = before != nullptr && bound == 0 && (commits_exist || shows_earlier_commits(survey));
  // A crash during the very first checkpoint leaves files but no commit; the job then starts from zero.
  const bool whole_run = tag == nullptr && before == nullptr;
  // A discarded tag is not lost: its files count as recycled.
  const bool any_lost =
      std::ranges::any_of(choice.skipped, [&](std::size_t index) { return !candidates[index].discarded; });
  if ((commits_exist || shows_earlier_commits(survey)) && (whole_run || any_lost)) {
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

#include "recovery/stranded_outputs.hpp"

#include <algorithm>
#include <map>

#include "base/text.hpp"
#include "commits/commit_names.hpp"

namespace kedge::recovery {

bool is_output_of_others(const Candidate& candidate, std::uint32_t processes) {
  return candidate.commit.is_output && !candidate.persistent && candidate.commit.world_size != processes;
}

StrandedOutputs stranded_outputs(const Survey& survey, const std::vector<CommitHead>& owed_before) {
  StrandedOutputs stranded;
  for (const Candidate& candidate : survey.candidates) {
    if (is_output_of_others(candidate, survey.processes)) {
      stranded.waiting.insert(stranded.waiting.begin(), candidate.commit);
    } else if (candidate.commit.is_output && !candidate.persistent && !candidate.recoverable) {
      stranded.lost.insert(stranded.lost.begin(), {candidate.commit, candidate.reason});
    }
  }
  for (const CommitHead& output : owed_before) {
    const auto is_it = [&](const Candidate& candidate) { return candidate.commit.id == output.id; };
    if (std::ranges::none_of(survey.candidates, is_it)) {
      stranded.lost.push_back({output, "nothing of it is in the stores any more"});
    }
  }
  return stranded;
}

std::vector<std::string> describe_lost_outputs(const StrandedOutputs& outputs) {
  std::vector<std::string> lines;
  for (const auto& [commit, why] : outputs.lost) {
    lines.push_back(
        compose("the output {} (generation {}) is lost: it is not on the prefix, and cannot be flushed from the "
                "node-local stores: {}",
                commit.tag, commit.generation, why));
  }
  return lines;
}

std::vector<std::string> describe_waiting_outputs(const StrandedOutputs& outputs, const PrefixOfRun& where) {
  std::map<std::uint32_t, std::vector<CommitHead>> by_size;
  for (const CommitHead& output : outputs.waiting) by_size[output.world_size].push_back(output);
  std::vector<std::string> lines;
  for (const auto& [world_size, of_size] : by_size) {
    const bool several = of_size.size() > 1;
    lines.push_back(compose(
        "the output{} {} {} not on the prefix: {} rank{} wrote {}, and this job has {}. {} files stay in the "
        "node-local stores until, after this job has ended, you run with the same options: kedge drain {} --run {}",
        several ? "s" : "", commits::list_tags(of_size), several ? "are" : "is", world_size, world_size == 1 ? "" : "s",
        several ? "them" : "it", where.processes, several ? "Their" : "Its", shell_word(where.prefix), where.run));
  }
  return lines;
}

}  // namespace kedge::recovery

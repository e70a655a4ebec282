// Outputs that are not on the prefix and that this start cannot flush.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "recovery/agreement.hpp"
#include "recovery/survey.hpp"

namespace kedge::recovery {

struct LostOutput {
  CommitHead commit;
  std::string why;
};

/// Oldest first.
struct StrandedOutputs {
  std::vector<CommitHead> waiting;  ///< made by other numbers of ranks; they stay in the stores
  std::vector<LostOutput> lost;     ///< too many of their files are lost
};

/// The prefix and run, for messages.
struct PrefixOfRun {
  std::string prefix;
  std::string run;
  std::uint32_t processes = 0;
};

/// Pure. Whether the output waits for a start with as many ranks as made it, or for kedge drain.
[[nodiscard]] bool is_output_of_others(const Candidate& candidate, std::uint32_t processes);

/// Pure. `owed_before` are the unflushed outputs known before the survey, of which nothing may be left.
[[nodiscard]] StrandedOutputs stranded_outputs(const Survey& survey, const std::vector<CommitHead>& owed_before);

/// Pure. A line for each lost output.
[[nodiscard]] std::vector<std::string> describe_lost_outputs(const StrandedOutputs& outputs);

/// Pure. A line for each number of ranks whose outputs wait, with the remedy.
[[nodiscard]] std::vector<std::string> describe_waiting_outputs(const StrandedOutputs& outputs,
                                                                const PrefixOfRun& where);

}  // namespace kedge::recovery

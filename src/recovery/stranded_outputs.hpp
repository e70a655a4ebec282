// Outputs that are not on the prefix and that this start cannot take there.
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

/// The oldest first.
struct StrandedOutputs {
  std::vector<CommitHead> waiting;  ///< other numbers of ranks made them: they stay in the stores
  std::vector<LostOutput> lost;     ///< too little is left of them
};

/// Whose prefix, for messages.
struct PrefixOfRun {
  std::string prefix;
  std::string run;
  std::uint32_t processes = 0;
};

/// Pure. Whether it waits for whoever starts with as many ranks as made it, or drains it.
[[nodiscard]] bool is_output_of_others(const Candidate& candidate, std::uint32_t processes);

/// Pure. `owed_before` is what was known to be owed before the stores were looked at, of which nothing may be left.
[[nodiscard]] StrandedOutputs stranded_outputs(const Survey& survey, const std::vector<CommitHead>& owed_before);

/// Pure. A line for each that is lost.
[[nodiscard]] std::vector<std::string> describe_lost_outputs(const StrandedOutputs& outputs);

/// Pure. A line for all that wait and were made by so many ranks, with the way on.
[[nodiscard]] std::vector<std::string> describe_waiting_outputs(const StrandedOutputs& outputs,
                                                                const PrefixOfRun& where);

}  // namespace kedge::recovery

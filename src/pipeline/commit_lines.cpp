#include "pipeline/commit_lines.hpp"

#include "base/text.hpp"
#include "base/units.hpp"

namespace kedge::pipeline {

std::string named(const CommitHead& commit, const std::string& run) {
  return run.empty() ? commit.tag : compose("{} of run '{}'", commit.tag, run);
}

std::string committed(const CommitHead& commit, const CommitOutcome& outcome) {
  std::string level = outcome.in_stores == Level::protected_ ? compose("protected ({})", to_string(outcome.scheme))
                                                             : std::string(to_string(outcome.in_stores));
  if (outcome.persistent_after_s) level += " and persistent";
  std::string line =
      compose("committed {} (generation {}): {} on {} rank{}, {}, blocked {}", named(commit, outcome.run),
              commit.generation, human_bytes(outcome.total_bytes), commit.world_size, commit.world_size == 1 ? "" : "s",
              level, human_seconds(outcome.blocked_s));
  if (outcome.protected_after_s) line += compose(", protected after {}", human_seconds(*outcome.protected_after_s));
  if (outcome.persistent_after_s) line += compose(", persistent after {}", human_seconds(*outcome.persistent_after_s));
  return line;
}

std::string not_protected(const CommitHead& commit, const Failure& failure) {
  return compose("{} is not protected against the loss of a node: {}", commit.tag, to_string(failure));
}

std::string not_flushed(const commits::Ledger& ledger, const CommitHead& commit, const Failure& failure,
                        std::uint64_t tries) {
  const auto entry = ledger.find(commit.id);
  // A flush may be over when a later start of the run is found to have taken over.
  if (entry && entry->persistent) return to_string(failure);
  return compose("{} is not on the parallel filesystem{}: {}", commit.tag,
                 tries > 1 ? compose(" (tried {} times)", tries) : "", to_string(failure));
}

}  // namespace kedge::pipeline

// What the log says of a commit.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "commits/ledger.hpp"
#include "kedge/error.hpp"
#include "kedge/options.hpp"
#include "kedge/types.hpp"

namespace kedge::pipeline {

/// What became of a commit, by the end of its turn.
struct CommitOutcome {
  std::uint64_t total_bytes = 0;
  Level in_stores = Level::local;  ///< local or protected
  Scheme scheme = Scheme::single;
  double blocked_s = 0;
  std::optional<double> protected_after_s = {};   ///< since its commit, if it was due and succeeded
  std::optional<double> persistent_after_s = {};  ///< likewise
  std::string run = {};                           ///< its name, if the line is to say it; else empty
};

/// Pure. The one line about a checkpoint.
[[nodiscard]] std::string committed(const CommitHead& commit, const CommitOutcome& outcome);
/// Pure. The tag, and the run where that is to be named.
[[nodiscard]] std::string named(const CommitHead& commit, const std::string& run);
/// Pure. The warning about a commit that could not be protected.
[[nodiscard]] std::string not_protected(const CommitHead& commit, const Failure& failure);
/// The warning about a commit of which the flush failed, after so many tries.
[[nodiscard]] std::string not_flushed(const commits::Ledger& ledger, const CommitHead& commit, const Failure& failure,
                                      std::uint64_t tries);

}  // namespace kedge::pipeline

// Stores of the run on a start's nodes: they may know more than the prefix, or another run.
#pragma once

#include <string>
#include <vector>

#include "comm/group.hpp"
#include "fs/file_system.hpp"
#include "kedge/types.hpp"
#include "start/identity.hpp"
#include "store/store_records.hpp"

namespace kedge::start {

/// This user's stores of a run's name on this job's nodes. All calls are COLLECTIVE.
class LocalStores {
 public:
  /// Reads their records. If `tolerant`, one that cannot be read counts as another run's.
  LocalStores(const comm::Group& group, const KnownRun& known, const RunSources& places, bool tolerant);

  /// The ids that those on this prefix have, of run `run_id` unless it is none; none if there is no store. If the
  /// prefix has no trace of the run, those without commits are of no interest. Throws mismatch if they differ.
  [[nodiscard]] RunIds common(const Id128& run_id) const;

  /// A prefix that was moved and lost its records does not say that stores are its own. Throws mismatch if there is one
  /// of run `run_id` whose prefix is gone from where it lay: its commits may be newer than those on the prefix.
  void require_none_left_behind(const Id128& run_id) const;

  /// Whether any has commits that the prefix does not know: it names this prefix, is not that of `ids`, and was not
  /// given up on purpose.
  [[nodiscard]] bool has_unknown(const RunIds& ids) const;
  /// Throws mismatch if so.
  void require_none_unknown(const RunIds& ids) const;
  /// The ids of those. Throws mismatch unless they agree, no store of `ids` has commits as well, and no other prefix
  /// still has the run.
  [[nodiscard]] RunIds adopt_unknown(const RunIds& ids) const;
  /// The runs of all that name this prefix and have commits.
  [[nodiscard]] std::vector<Id128> runs_with_commits() const;
  /// Warning of start = fresh about runs that the prefix does not know: the lowest rank's first such store, its newest
  /// commit, and the ways on; empty if there is none.
  [[nodiscard]] std::string describe_left_behind() const;
  /// Where the prefix of those with these ids lay, if that is elsewhere.
  [[nodiscard]] std::vector<std::string> former_prefixes(const RunIds& ids) const;

 private:
  /// Whether it was used by a start of this very prefix.
  [[nodiscard]] bool is_of_this_prefix(const store::NamedStore& one) const {
    return one.record.prefix == known_.prefix;
  }
  /// Whether it was used by a start of a prefix that was given by the same path, which leads elsewhere now.
  [[nodiscard]] bool is_by_name(const store::NamedStore& one) const;
  [[nodiscard]] bool is_unknown(const store::NamedStore& one, const RunIds& ids) const;
  [[nodiscard]] bool belongs_to_other_run(const store::NamedStore& one) const;
  /// Why it stops the start, and the ways on.
  [[nodiscard]] std::string explain_refusal(const store::NamedStore& one, const RunIds& ids) const;
  /// Throws mismatch: nothing says which of them is meant.
  [[noreturn]] void throw_ambiguous(const store::NamedStore& one) const;

  const comm::Group& group_;
  const KnownRun& known_;
  fs::FileSystem& file_system_;
  std::vector<store::NamedStore> stores_;
};

/// State of the directory where a run's records lay at its last start.
enum class OriginalPrefix { gone, there, denied };

/// Local. If the run's records still lie in `directory`, the prefix that is used now is a copy of that one. Damaged
/// ones count as the original's. Throws Error{io} if that cannot be read.
[[nodiscard]] OriginalPrefix find_original_prefix(fs::FileSystem& file_system, const std::string& directory,
                                                  const Id128& run_id);

}  // namespace kedge::start

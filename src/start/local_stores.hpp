// The run's stores on this job's nodes: they may have commits that the prefix does not know, or of another run.
#pragma once

#include <string>
#include <vector>

#include "comm/group.hpp"
#include "fs/file_system.hpp"
#include "kedge/types.hpp"
#include "start/identity.hpp"
#include "store/store_record_files.hpp"

namespace kedge::start {

/// This user's stores of a run's name on this job's nodes. All calls are COLLECTIVE.
class LocalStores {
 public:
  /// Reads the stores' records. If `tolerant`, one that cannot be read counts as another run's.
  LocalStores(const comm::Group& group, const KnownRun& known, const RunSources& sources, bool tolerant);

  /// Returns the ids of the stores that name this prefix, of run `run_id` unless it is none; none if there is no store.
  /// If the prefix has no trace of the run, stores without commits do not count. Throws mismatch if the ids differ.
  [[nodiscard]] RunIds common_ids(const Id128& run_id) const;

  /// Throws mismatch if there is a store of run `run_id` whose prefix is gone from its path: its commits may be newer
  /// than those on this prefix, which may be the moved one.
  void require_none_left_behind(const Id128& run_id) const;

  /// Whether any store has commits that the prefix does not know: the store names this prefix, and its run is not that
  /// of `ids`, nor given up on purpose.
  [[nodiscard]] bool has_unknown(const RunIds& ids) const;
  /// Throws mismatch if has_unknown().
  void require_none_unknown(const RunIds& ids) const;
  /// Returns the ids of those unknown stores. Throws mismatch unless they agree, no store of `ids` has commits as well,
  /// and no other prefix still has the run.
  [[nodiscard]] RunIds adopt_unknown(const RunIds& ids) const;
  /// Returns the runs of all stores that name this prefix and have commits.
  [[nodiscard]] std::vector<Id128> runs_with_commits() const;
  /// Returns the warning of start = fresh about runs that the prefix does not know: the lowest rank's first such store,
  /// its newest commit, and what the user can do; empty if there is none.
  [[nodiscard]] std::string describe_left_behind() const;
  /// Where the prefix of those with these ids lay, if that is elsewhere.
  [[nodiscard]] std::vector<std::string> former_prefixes(const RunIds& ids) const;

 private:
  /// Whether the store was used by a start of this prefix.
  [[nodiscard]] bool is_of_this_prefix(const store::NamedStore& one) const {
    return one.record.prefix == known_.prefix;
  }
  /// Whether the store was used by a start of a prefix that was given by this path, which leads elsewhere now.
  [[nodiscard]] bool is_by_name(const store::NamedStore& one) const;
  [[nodiscard]] bool is_unknown(const store::NamedStore& one, const RunIds& ids) const;
  [[nodiscard]] bool belongs_to_other_run(const store::NamedStore& one) const;
  /// Returns why the store stops the start, and what the user can do.
  [[nodiscard]] std::string explain_refusal(const store::NamedStore& one, const RunIds& ids) const;
  /// Throws mismatch: it is unknown which of the stores is meant.
  [[noreturn]] void throw_ambiguous(const store::NamedStore& one) const;

  const comm::Group& group_;
  const KnownRun& known_;
  fs::FileSystem& file_system_;
  std::vector<store::NamedStore> stores_;
};

/// State of the directory where a run's records lay at its last start.
enum class OriginalPrefix { missing, exists, inaccessible };

/// Returns whether the run's records still exist in `directory`: then the prefix in use is a copy of that one. Damaged
/// records count as the original's. Throws Error{io} if that cannot be read. Local.
[[nodiscard]] OriginalPrefix find_original_prefix(fs::FileSystem& file_system, const std::string& directory,
                                                  const Id128& run_id);

}  // namespace kedge::start

// Markers among a run's records that say of its commits that there are any, and which were discarded.
#pragma once

#include <string>
#include <string_view>

#include "fs/file_system.hpp"
#include "kedge/types.hpp"
#include "persist/run_start.hpp"

namespace kedge::persist {

/// Local. Whether the records in `directory` note that commits of the run exist. Throws Error{io}.
[[nodiscard]] bool has_checkpoints(fs::FileSystem& file_system, const std::string& directory);

/// Used by one rank. All calls are local and throw Error{io | no_space} when the prefix cannot be used. Whatever is
/// written is on stable storage when the call returns. Markers that commits exist name the run: those of another one,
/// which began here before, do not count.
class PrefixMarkers {
 public:
  /// `start` must outlive this.
  explicit PrefixMarkers(const RunStart& start) : start_(start) {}

  /// A commit of this run has returned at least once. `run_id` none: of any run.
  [[nodiscard]] bool has_first_commit(const Id128& run_id) const;
  /// Throws busy as RunStart::require_newest.
  void mark_first_commit(const Id128& run_id, const Id128& commit_id) const;
  /// The run's commits were removed on purpose: has_first_commit() is false again. Throws Error{busy} if a later
  /// start has begun: then they are not this one's to forget.
  void remove_first_commit() const;
  /// A first manifest was renamed into place.
  [[nodiscard]] bool has_first_manifest(const Id128& run_id) const;
  void mark_first_manifest(const Id128& run_id, const Id128& commit_id) const;
  /// Removes the markers of other runs.
  void remove_markers_of_others(const Id128& run_id) const;

  /// Commits that were abandoned by open(…, Newer::discard) are never offered again.
  [[nodiscard]] bool is_discarded(const Id128& commit_id) const;
  void discard(const Id128& commit_id) const;
  /// RunStart::require_reachable: where it throws, no marker is seen and nothing follows from that.
  void require_reachable() const { start_.require_reachable(); }

 private:
  [[nodiscard]] const RecordDirectory& directory() const { return start_.directory(); }
  [[nodiscard]] bool has_marker(std::string_view name, const Id128& run_id) const;
  void mark(std::string_view name, const Id128& run_id, const Id128& commit_id) const;

  const RunStart& start_;
};

}  // namespace kedge::persist

// Markers in a run's records: whether commits exist, and which were discarded.
#pragma once

#include <string>
#include <string_view>

#include "fs/file_system.hpp"
#include "kedge/types.hpp"
#include "persist/run_start.hpp"

namespace kedge::persist {

/// Whether a marker in `directory` says that commits of the run exist. Throws Error{io}. Local.
[[nodiscard]] bool has_checkpoints(fs::FileSystem& file_system, const std::string& directory);

/// The markers of one run. Used by one rank. All calls are local and throw Error{io | no_space} when the prefix cannot
/// be used. Written markers are on stable storage when the call returns. Markers that commits exist name the run: those
/// of another run that had this directory before do not count.
class PrefixMarkers {
 public:
  /// `start` must outlive this.
  explicit PrefixMarkers(const RunStart& start) : start_(start) {}

  /// Whether a commit of this run has returned at least once. `run_id` none: of any run.
  [[nodiscard]] bool has_first_commit(const Id128& run_id) const;
  /// Marks that a commit has returned. Throws busy as RunStart::require_newest.
  void mark_first_commit(const Id128& run_id, const Id128& commit_id) const;
  /// Removes the marker, after the run's commits were removed on purpose. Throws Error{busy} if a later start has
  /// begun: it may rely on the marker.
  void remove_first_commit() const;
  /// Whether a manifest of this run was renamed into place at least once.
  [[nodiscard]] bool has_first_manifest(const Id128& run_id) const;
  void mark_first_manifest(const Id128& run_id, const Id128& commit_id) const;
  /// Removes the markers of other runs.
  void remove_markers_of_others(const Id128& run_id) const;

  /// Whether the commit was discarded by open(…, Newer::discard): then it is never offered again.
  [[nodiscard]] bool is_discarded(const Id128& commit_id) const;
  void mark_discarded(const Id128& commit_id) const;
  /// Throws as RunStart::require_reachable does: if the prefix is out of reach, missing markers mean nothing.
  void require_reachable() const { start_.require_reachable(); }

 private:
  [[nodiscard]] const RecordDirectory& directory() const { return start_.directory(); }
  [[nodiscard]] bool has_marker(std::string_view name, const Id128& run_id) const;
  void mark(std::string_view name, const Id128& run_id, const Id128& commit_id) const;

  const RunStart& start_;
};

}  // namespace kedge::persist

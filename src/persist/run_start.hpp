// This start of a run among all its starts, which the run's records number: only the newest may change the prefix.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "kedge/types.hpp"
#include "persist/record_directory.hpp"
#include "persist/run_record.hpp"
#include "persist/start_markers.hpp"

namespace kedge::persist {

/// Returns the name of the file by which ranks see that they share the prefix. Pure.
[[nodiscard]] std::string nonce_name(std::uint64_t incarnation);

/// This start in the run's records. Used by one rank. All calls are local and throw Error{io | no_space} when the
/// prefix cannot be used. Written markers are on stable storage when the call returns, unless it says otherwise.
class RunStart {
 public:
  explicit RunStart(RecordDirectory directory) : directory_(std::move(directory)) {}

  [[nodiscard]] const RecordDirectory& directory() const noexcept { return directory_; }
  /// Returns this start's number; 0 before take_incarnation().
  [[nodiscard]] std::uint64_t incarnation() const noexcept { return incarnation_; }
  /// Returns persist::previous_start() for this start.
  [[nodiscard]] std::optional<PreviousStart> previous_start() const;

  /// Takes the next incarnation by exclusive create: greater than every earlier one. Its marker says who starts.
  std::uint64_t take_incarnation(LaunchInfo launch_info = {});
  /// Marks that this start only flushes what others left. Call it before mark_begun().
  void mark_drain();
  /// Marks that this start holds its locks on all stores: from now on older ones may change nothing here. A start that
  /// only waits for the locks of an older one, or was killed while it waited, supersedes none. Throws Error{busy} if a
  /// later one has begun. `record` is kept with the marker: if run.json is damaged, read_record_of_newest_start() still
  /// finds it.
  void mark_begun(const RunRecord& record);
  /// Whether no later start has begun and this start's marker is still there. Throws io as require_reachable().
  [[nodiscard]] bool is_newest() const;
  /// Throws Error{busy} if a later start has begun, or the run was removed from the prefix: then this one may commit
  /// and remove nothing there any more.
  void require_newest() const;
  /// Throws Error{io} if the prefix is out of reach at the moment, once this start has begun: what is seen in its place
  /// says nothing of the run.
  void require_reachable() const;
  /// Marks that this start, which has begun, has ended, for later starts that check whether it may still be at work.
  void mark_ended();
  /// Gives the incarnation back: this start failed and must not stop the one that runs.
  void withdraw();
  /// Removes all records of the run and their directory; last the markers by which this start overtakes older ones.
  void remove_records();

  /// Writes a number, as 32 hex digits in `nonce-<incarnation>`, for other ranks to read; not on stable storage.
  void write_nonce(const Id128& nonce);
  /// Removes the nonces of this start and of all earlier ones. Call it once this one has begun: an older start that is
  /// not superseded may still need its own.
  void remove_nonces();

 private:
  [[nodiscard]] std::string marker(std::string_view kind) const { return marker_name(kind, incarnation_); }
  [[nodiscard]] std::uint64_t newest_number(std::string_view kind) const;
  [[nodiscard]] bool is_newest_by_names() const;

  RecordDirectory directory_;
  std::uint64_t incarnation_ = 0;
  std::string launch_id_;
  std::string begun_text_;  ///< text that mark_begun() wrote; empty before
};

}  // namespace kedge::persist

// The run's records on the prefix: who the run is, which start of it is the newest, that commits exist.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fs/file_system.hpp"
#include "kedge/error.hpp"
#include "kedge/types.hpp"
#include "persist/start_markers.hpp"

namespace kedge::persist {

/// Who a run is: what its run.json says.
struct RunRecord {
  Id128 run_id = {};
  std::string prefix = {};  ///< canonical path of the prefix at the last start
  /// Where it lay before, newest first. Prefixes that it was copied from are not here.
  std::vector<std::string> former_prefixes = {};
  /// Drawn where the run began, and anew for each copy of the prefix: the stores are this place's.
  Id128 prefix_id = {};
  std::optional<std::string> fingerprint = {};  ///< what the run's commits depend on
  /// Rank 0's when a commit was last made or opened, or at the first start; empty if unknown.
  std::string store = {};
  /// Runs of this name that start = fresh, or the adoption of another one's stores, left behind: what stores still have
  /// of them is known, and not wanted. Newest first.
  std::vector<Id128> given_up = {};
  bool operator==(const RunRecord&) const = default;
};

/// A record as it was found.
struct FoundRecord {
  std::optional<RunRecord> record;
  bool damaged = false;               ///< there is a run.json, and it is damaged
  std::optional<Failure> unreadable;  ///< why it could not be read, if that is how it is damaged
};

/// Pure. Where the record of the run is whose records lie in `directory`.
[[nodiscard]] std::string run_record_path(std::string_view directory);
/// Local, reads only: that record. Throws Error{io}.
[[nodiscard]] FoundRecord read_run_record(fs::FileSystem& file_system, const std::string& directory);

/// Local, reads only: the record as the newest start that began kept it; nothing if none can be read. Throws Error{io}.
[[nodiscard]] std::optional<RunRecord> read_record_of_newest_start(fs::FileSystem& file_system,
                                                                   const std::string& directory);

/// Pure. Name of the file by which ranks see that they share the prefix.
[[nodiscard]] std::string nonce_name(std::uint64_t incarnation);

/// Local. The newest start that began, but for those that only flush what others left; 0: none. Throws Error{io}.
[[nodiscard]] std::uint64_t newest_job_start(fs::FileSystem& file_system, const std::string& directory);

/// Local. Whether the records in `directory` note that commits of the run exist. Throws Error{io}.
[[nodiscard]] bool has_checkpoints(fs::FileSystem& file_system, const std::string& directory);

/// Records of one run below `<prefix>/.kedge/<run>/`. Used by one rank; all calls are local and throw
/// Error{io | no_space} when the prefix cannot be used. Everything written is on stable storage when the call
/// returns.
class RunRecords {
 public:
  /// Makes the prefix and the run's directory if they are missing. Throws io if a directory belongs to somebody else or
  /// can be written by others.
  RunRecords(std::shared_ptr<fs::FileSystem> file_system, const std::string& prefix, std::string run);

  [[nodiscard]] const std::string& run() const noexcept { return run_; }
  [[nodiscard]] const LaunchInfo& launch_info() const noexcept { return launch_info_; }
  /// Canonical.
  [[nodiscard]] const std::string& prefix() const noexcept { return prefix_; }

  /// Takes the next incarnation by exclusive create: greater than every one before. Its note says who starts.
  std::uint64_t take_incarnation(LaunchInfo launch_info = {});
  /// persist::previous_start for this start.
  [[nodiscard]] std::optional<PreviousStart> previous_start() const {
    return persist::previous_start(*file_system_, directory_, incarnation_, launch_info_.launch);
  }
  [[nodiscard]] std::optional<PreviousStart> newest_start(const std::string& launch) const {
    return persist::newest_start(*file_system_, directory_, launch);
  }
  /// This start has its place on all stores: from now on older ones may change nothing here. A start that only
  /// waits for the locks of an older one, or was killed while it waited, supersedes nobody. Throws Error{busy} if
  /// a later one has begun. `record` is kept with it: should run.json be damaged, record_of_newest_start() still knows
  /// it.
  void begin_incarnation(const RunRecord& record);
  /// The record as the newest start that began kept it; nothing if none can be read.
  [[nodiscard]] std::optional<RunRecord> record_of_newest_start() {
    return read_record_of_newest_start(*file_system_, directory_);
  }
  /// Before it begins: this start only flushes what others left.
  void mark_drain();
  /// Once this start has begun: throws Error{io} if the prefix is not there at the moment. What is seen in its place
  /// says nothing of the run.
  void require_reachable();
  /// True while no later start has begun and the note that this one did is still there. Throws io as require_reachable.
  [[nodiscard]] bool is_newest_incarnation();
  /// This start, which has begun, is over: for whoever asks later whether it may still be at work.
  void mark_ended() { persist::mark_ended(*file_system_, directory_, incarnation_); }
  /// Gives the incarnation back: this start failed and must not stop the one that runs.
  void withdraw_incarnation();
  /// Removes all records and their directory; last those by which this start overtakes older ones.
  void remove_all();

  /// Leaves a number, as 32 hex digits in `nonce-<incarnation>`, for other ranks to see; not on stable storage.
  void write_nonce(const Id128& nonce);
  /// Removes those of this start and of all before it. Once this one has begun: an older start that is not superseded
  /// may still be looking for its own.
  void remove_nonces();

  [[nodiscard]] FoundRecord read_record() { return read_run_record(*file_system_, directory_); }
  void write_record(const RunRecord& record);
  /// Puts rank 0's store into the record. Throws Error{busy} if a later start has begun.
  void record_store(const std::string& store);
  /// True if `directory` is seen to be the directory of these records, reached by another path; false also if it is out
  /// of this user's reach.
  [[nodiscard]] bool is_same_directory(const std::string& directory);

  // Notes that commits exist. Each names the run: those of another one, which began here before, do not count.

  /// A commit of this run has returned at least once. `run_id` none: of any run.
  [[nodiscard]] bool has_first_commit(const Id128& run_id);
  /// Throws busy like require_newest_incarnation.
  void mark_first_commit(const Id128& commit_id);
  /// Removes the notes of other runs.
  void remove_markers_of_others(const Id128& run_id);
  /// The run's commits were removed on purpose: has_first_commit() is false again. Throws Error{busy} if a later
  /// start has begun: then they are not this one's to forget.
  void remove_commit_markers();

  /// A first manifest was renamed into place.
  [[nodiscard]] bool has_first_manifest(const Id128& run_id);
  void mark_first_manifest(const Id128& commit_id);

  /// This start makes or removes a tag directory: whatever of it is no commit when the start has ended is nobody's.
  /// Throws Error{busy} if a later start has begun.
  void mark_unfinished(std::string_view directory);
  void unmark_unfinished(std::string_view directory);
  /// Tag directories that this start or one before left unfinished. Throws Error{busy} if a later start has begun.
  [[nodiscard]] std::vector<std::string> unfinished();

  /// Throws Error{busy} if a later start has begun, or the run was removed from the prefix: then this one commits and
  /// removes nothing there any more.
  void require_newest_incarnation();
  /// Where the run's records lie.
  [[nodiscard]] const std::string& directory() const noexcept { return directory_; }

  /// Commits that were abandoned by open(…, Newer::discard) are never offered again.
  [[nodiscard]] bool is_discarded(const Id128& commit_id);
  void discard(const Id128& commit_id);

 private:
  [[nodiscard]] std::string record(std::string_view name) const { return fs::join(directory_, name); }
  [[nodiscard]] std::uint64_t newest(std::string_view kind);
  [[nodiscard]] bool seems_newest();
  [[nodiscard]] bool has_marker(std::string_view name, const Id128& run_id);
  void note(std::string_view name, const Id128& commit_id);
  [[nodiscard]] std::string text_of(const RunRecord& content) const;
  /// Writes a small file once; a name that is taken is left as it is.
  void write_once(const std::string& path, std::string_view text);
  /// Writes a small file in place of the one of this name, whole or not at all.
  void replace(std::string_view name, std::string_view text);

  std::shared_ptr<fs::FileSystem> file_system_;
  std::string prefix_;
  std::string run_;
  std::string directory_;
  std::uint64_t incarnation_ = 0;
  LaunchInfo launch_info_;
  std::string begun_;  ///< what begin_incarnation wrote; empty before
  Id128 run_id_;       ///< since then
};

}  // namespace kedge::persist

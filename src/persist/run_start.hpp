// This start of a run among all its starts, as the run's records number them: the newest that began may change the
// prefix.
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

/// Pure. Name of the file by which ranks see that they share the prefix.
[[nodiscard]] std::string nonce_name(std::uint64_t incarnation);

/// Used by one rank. All calls are local and throw Error{io | no_space} when the prefix cannot be used. Whatever is
/// written is on stable storage when the call returns, unless it says otherwise.
class RunStart {
 public:
  explicit RunStart(RecordDirectory directory) : directory_(std::move(directory)) {}

  [[nodiscard]] const RecordDirectory& directory() const noexcept { return directory_; }
  /// 0 before take().
  [[nodiscard]] std::uint64_t incarnation() const noexcept { return incarnation_; }
  /// persist::previous_start for this start.
  [[nodiscard]] std::optional<PreviousStart> previous() const;

  /// Takes the next incarnation by exclusive create: greater than every one before. Its note says who starts.
  std::uint64_t take(LaunchInfo launch_info = {});
  /// Before it begins: this start only flushes what others left.
  void mark_drain();
  /// This start has its place on all stores: from now on older ones may change nothing here. A start that only
  /// waits for the locks of an older one, or was killed while it waited, supersedes nobody. Throws Error{busy} if
  /// a later one has begun. `record` is kept with it: should run.json be damaged, read_record_of_newest_start() still
  /// knows it.
  void begin(const RunRecord& record);
  /// True while no later start has begun and the note that this one did is still there. Throws io as
  /// require_reachable.
  [[nodiscard]] bool is_newest() const;
  /// Throws Error{busy} if a later start has begun, or the run was removed from the prefix: then this one commits and
  /// removes nothing there any more.
  void require_newest() const;
  /// Once this start has begun: throws Error{io} if the prefix is not there at the moment. What is seen in its place
  /// says nothing of the run.
  void require_reachable() const;
  /// This start, which has begun, is over: for whoever asks later whether it may still be at work.
  void mark_ended();
  /// Gives the incarnation back: this start failed and must not stop the one that runs.
  void withdraw();
  /// Removes all records of the run and their directory; last those by which this start overtakes older ones.
  void remove_records();

  /// Leaves a number, as 32 hex digits in `nonce-<incarnation>`, for other ranks to see; not on stable storage.
  void write_nonce(const Id128& nonce);
  /// Removes those of this start and of all before it. Once this one has begun: an older start that is not superseded
  /// may still be looking for its own.
  void remove_nonces();

 private:
  [[nodiscard]] std::string marker(std::string_view kind) const { return marker_name(kind, incarnation_); }
  [[nodiscard]] std::uint64_t newest(std::string_view kind) const;
  [[nodiscard]] bool seems_newest() const;

  RecordDirectory directory_;
  std::uint64_t incarnation_ = 0;
  std::string launch_;
  std::string begun_;  ///< what begin() wrote; empty before
};

}  // namespace kedge::persist

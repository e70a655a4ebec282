// Markers of each start of a run in the run's records: its number, who started it, and how far it came.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fs/file_system.hpp"
#include "kedge/types.hpp"

namespace kedge::persist {

/// The origin of a start: unknown values are empty, or -1.
struct LaunchInfo {
  std::string launch_id = {};     ///< equal for all processes that one launcher started together
  int first_process = -1;         ///< the launcher's rank of the engine's rank 0
  int process_count = -1;         ///< number of processes of the launch
  int rank_count = 0;             ///< number of ranks of the engine
  std::string array_task = {};    ///< task of a job array
  std::string communicator = {};  ///< name that the application gave the communicator
  Id128 id = {};                  ///< drawn for this start
  bool operator==(const LaunchInfo&) const = default;
};

/// An earlier start.
struct PreviousStart {
  std::uint64_t incarnation = 0;
  LaunchInfo launch_info;
};

// Notes of every start, `<kind><incarnation>` among the run's records. On disk: do not change.
inline constexpr std::string_view kTakenMarker = "incarnation-";    ///< its number is taken; holds taken_marker_text()
inline constexpr std::string_view kBegunMarker = "begun-";          ///< the start is the newest that works
inline constexpr std::string_view kDrainMarker = "drain-";          ///< the start only flushes what others left
inline constexpr std::string_view kWithdrawnMarker = "withdrawn-";  ///< the start failed before it began
inline constexpr std::string_view kEndedMarker = "ended-";          ///< the start has begun, and is no longer at work

/// How many numbers a start tries to take.
inline constexpr int kIncarnationTries = 1000;

/// Returns the name of start `number`'s marker of this kind. Pure.
[[nodiscard]] std::string marker_name(std::string_view kind, std::uint64_t number);

/// Pure. Text of a taken number's note.
[[nodiscard]] std::string taken_marker_text(const LaunchInfo& launch_info);

/// Returns the numbers of all markers of this kind, in no order. Throws Error{io}. Local.
[[nodiscard]] std::vector<std::uint64_t> marker_numbers(fs::FileSystem& file_system, const std::string& directory,
                                                        std::string_view kind);

/// Returns the newest start that began, except those that only flush what others left; 0 if there is none. Throws
/// Error{io}. Local.
[[nodiscard]] std::uint64_t newest_job_start(fs::FileSystem& file_system, const std::string& directory);

/// Marks that start `number` is no longer at work. Does nothing for one that has not begun, whose number may be taken
/// again. Throws Error{io | no_space}. Local.
void mark_ended(fs::FileSystem& file_system, const std::string& directory, std::uint64_t number);

/// Whether a start is marked as ended. Throws Error{io}. Local.
[[nodiscard]] bool has_ended(fs::FileSystem& file_system, const std::string& directory, std::uint64_t number);

/// Returns the newest start of the application before number `incarnation` that has begun, or of `launch` that is on
/// its way; nothing if its marker cannot be read, which refuses no start. Throws Error{io}. Local.
[[nodiscard]] std::optional<PreviousStart> previous_start(fs::FileSystem& file_system, const std::string& directory,
                                                          std::uint64_t incarnation, const std::string& launch);

/// Returns the newest start of all that has begun, or of `launch` that is on its way. Throws Error{io}. Local.
[[nodiscard]] std::optional<PreviousStart> newest_start(fs::FileSystem& file_system, const std::string& directory,
                                                        const std::string& launch);

}  // namespace kedge::persist

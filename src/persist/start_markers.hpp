// Notes of each start of a run among the run's records: its number, who started it, and how far it came.
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
  std::string launch = {};        ///< id of the launch: the same for all processes that one launcher started together
  int first = -1;                 ///< the launcher's rank of the engine's rank 0
  int launched = -1;              ///< how many processes the launch has
  int ranks = 0;                  ///< of the engine
  std::string array_task = {};    ///< of a job array
  std::string communicator = {};  ///< the name that the application gave it
  Id128 id = {};                  ///< drawn for this start
  bool operator==(const LaunchInfo&) const = default;
};

/// A start that came before.
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

/// Pure. The name of start `number`'s marker of this kind.
[[nodiscard]] std::string marker_name(std::string_view kind, std::uint64_t number);

/// Pure. Text of a taken number's note.
[[nodiscard]] std::string taken_marker_text(const LaunchInfo& launch_info);

/// Local, reads only: the numbers of all notes of this kind, in no order. Throws Error{io}.
[[nodiscard]] std::vector<std::uint64_t> marker_numbers(fs::FileSystem& file_system, const std::string& directory,
                                                        std::string_view kind);

/// Local. The newest start that began, but for those that only flush what others left; 0: none. Throws Error{io}.
[[nodiscard]] std::uint64_t newest_job_start(fs::FileSystem& file_system, const std::string& directory);

/// Local: start `number` is no longer at work, as somebody has seen. Nothing is noted of one that has not begun, whose
/// number may be taken again. Throws Error{io | no_space}.
void mark_ended(fs::FileSystem& file_system, const std::string& directory, std::uint64_t number);

/// Local, reads only. Whether that was noted. Throws Error{io}.
[[nodiscard]] bool has_ended(fs::FileSystem& file_system, const std::string& directory, std::uint64_t number);

/// Local, reads only: the newest start of the application before number `incarnation` that has begun, or of `launch`
/// that is on its way; nothing if its note cannot be read, which refuses no start. Throws Error{io}.
[[nodiscard]] std::optional<PreviousStart> previous_start(fs::FileSystem& file_system, const std::string& directory,
                                                          std::uint64_t incarnation, const std::string& launch);

/// Local, reads only: the newest start of all that has begun, or of `launch` that is on its way. Throws Error{io}.
[[nodiscard]] std::optional<PreviousStart> newest_start(fs::FileSystem& file_system, const std::string& directory,
                                                        const std::string& launch);

}  // namespace kedge::persist

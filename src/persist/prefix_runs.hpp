// Which runs have checkpoints on a prefix, which of them a job goes on with that names none, and how one is removed.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fs/file_system.hpp"
#include "persist/tags.hpp"

namespace kedge::persist {

/// Pure. Below a prefix: where the records of its runs lie, a directory each; and where those of one run do.
[[nodiscard]] std::string records_directory(std::string_view prefix);
[[nodiscard]] std::string records_directory(std::string_view prefix, std::string_view run);

/// Pure. Where copies of nodes' stores lie until they are flushed, below a run's records; how each node's begins.
[[nodiscard]] std::string scavenge_directory(std::string_view records);
inline constexpr std::string_view kScavengedNode = "node-";

/// Local. Status of a directory. Throws Error{io} if it is not one.
fs::FileStatus directory_status(fs::FileSystem& file_system, const std::string& path);

/// Local. Makes the prefix and the directory of the records if they are missing; the prefix's canonical path. Throws io
/// if one cannot be made or everybody could replace files in it.
[[nodiscard]] std::string make_prefix(fs::FileSystem& file_system, const std::string& prefix);

/// Local. The runs of this user that have checkpoints, in alphabetical order: by the notes in their records, or if
/// there are no records at all, by the manifests. Throws Error{io}.
[[nodiscard]] std::vector<std::string> runs_with_checkpoints(fs::FileSystem& file_system, const std::string& prefix);

/// Local. The runs of this user that have checkpoints, by the manifests alone. Throws Error{io}.
[[nodiscard]] std::vector<std::string> runs_with_manifests(fs::FileSystem& file_system, const std::string& prefix);

/// Pure. The name that the application gave a communicator; empty if it gave none.
[[nodiscard]] std::string given_name(std::string_view communicator_name);

/// Pure. The name of a run that was given none, on a communicator of this name: that name itself, or `main` if nobody
/// gave it one.
[[nodiscard]] std::string default_run_name(std::string_view communicator_name);

/// Pure. The name of a run that was given one, which may be that of several parts of a job: with a dot and the
/// communicator's name behind it, if it has one and that is another. Throws invalid_argument if that is too long.
[[nodiscard]] std::string run_of_part(const std::string& run, std::string_view communicator_name);

/// Pure. The run that a job goes on with that names none, `runs` being those that have checkpoints: its default name if
/// that is one of them or there are none. A job whose communicator has no name goes on with the only one that there is.
/// `knows_default`: the prefix has records of a run of the default name. Throws mismatch that lists the runs: a job
/// does not start from zero beside checkpoints that may be its own.
[[nodiscard]] std::string choose_run(std::string_view communicator_name, std::span<const std::string> runs,
                                     bool knows_default);

/// Commits of a run on a prefix.
struct RunOnPrefix {
  std::vector<TagEntry> entries;        ///< commits of this user, newest first; pinned ones, too
  std::vector<std::string> unreadable;  ///< tag directories whose manifest does not say which run they belong to
};

/// Local, reads only. Throws Error{io}.
[[nodiscard]] RunOnPrefix find_on_prefix(fs::FileSystem& file_system, const std::string& prefix,
                                         const std::string& run);

/// Local. Begins as a later start would, so that a job of this run that is still there publishes nothing any more, and
/// removes all commits of the run that are there then; records and notes last: half a removal is not taken for a run
/// that never had a commit. Returns what it removed, and what it could not read and left. Throws Error{io}: not all of
/// it could be removed, which can be tried again.
RunOnPrefix remove_run(const std::shared_ptr<fs::FileSystem>& file_system, const std::string& prefix,
                       const std::string& run);

}  // namespace kedge::persist

// Runs on a prefix: which have checkpoints, which of them a job continues, and how one is removed.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fs/file_system.hpp"
#include "persist/tags.hpp"

namespace kedge::persist {

/// Returns the directory below a prefix that contains the records of its runs, a directory each. Pure.
[[nodiscard]] std::string records_directory(std::string_view prefix);
/// Returns the directory of one run's records. Pure.
[[nodiscard]] std::string records_directory(std::string_view prefix, std::string_view run);

/// Returns the directory below a run's records for copies of nodes' stores until they are flushed. Pure.
[[nodiscard]] std::string scavenge_directory(std::string_view records);
/// Prefix of the name of each node's copy.
inline constexpr std::string_view kScavengedNode = "node-";

/// Returns the status of a directory. Throws Error{io} if it is not one. Local.
fs::FileStatus directory_status(fs::FileSystem& file_system, const std::string& path);

/// Makes the prefix and the directory of the records if they are missing; returns the prefix's canonical path. Throws
/// io if one cannot be made or every user could replace files in it. Local.
[[nodiscard]] std::string make_prefix(fs::FileSystem& file_system, const std::string& prefix);

/// Returns this user's runs that have checkpoints, in alphabetical order: by markers in their records, or if there are
/// no records at all, by the manifests. Throws Error{io}. Local.
[[nodiscard]] std::vector<std::string> runs_with_checkpoints(fs::FileSystem& file_system, const std::string& prefix);

/// Returns this user's runs that have checkpoints, by the manifests alone. Throws Error{io}. Local.
[[nodiscard]] std::vector<std::string> runs_with_manifests(fs::FileSystem& file_system, const std::string& prefix);

/// Returns the name that the application gave a communicator; empty if it gave none. Pure.
[[nodiscard]] std::string explicit_name(std::string_view communicator_name);

/// Returns the name of a run without a given name on a communicator of this name: the communicator's if the application
/// gave it one, else `main`. Pure.
[[nodiscard]] std::string default_run_name(std::string_view communicator_name);

/// Returns the name of a run that was given one, which several parts of a job may share: with a dot and the
/// communicator's name behind it, if it has one and that is another. Throws invalid_argument if that is too long. Pure.
[[nodiscard]] std::string run_name_of_part(const std::string& run, std::string_view communicator_name);

/// Returns the run that a job continues if it names none; `runs` are those that have checkpoints: its default name if
/// that is one of them or there are none. A job whose communicator has no name continues the only one. `knows_default`:
/// the prefix has records of a run of the default name. Throws mismatch that lists the runs: a job does not start from
/// zero beside checkpoints that may be its own. Pure.
[[nodiscard]] std::string choose_run(std::string_view communicator_name, std::span<const std::string> runs,
                                     bool knows_default);

/// A run's commits on a prefix.
struct RunOnPrefix {
  std::vector<TagEntry> entries;        ///< commits of this user, newest first, including pinned ones
  std::vector<std::string> unreadable;  ///< tag directories whose manifest does not say which run they belong to
};

/// Finds the run's commits. Reads only. Throws Error{io}. Local.
[[nodiscard]] RunOnPrefix find_run_on_prefix(fs::FileSystem& file_system, const std::string& prefix,
                                             const std::string& run);

/// Removes a run. Begins as a later start would, so that a job of this run that is still there publishes nothing any
/// more, and then removes all commits of the run; records and markers last, so that half a removal is not taken for a
/// run that never had a commit. Returns the removed commits, and unreadable ones, which it left. Throws Error{io} if
/// not all of it could be removed, which can be tried again. Local.
RunOnPrefix remove_run(const std::shared_ptr<fs::FileSystem>& file_system, const std::string& prefix,
                       const std::string& run);

}  // namespace kedge::persist

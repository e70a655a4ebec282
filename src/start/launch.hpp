// The launch that makes a start: its id, this process's part of it, and the task of a job array.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "persist/start_markers.hpp"

namespace kedge::start {

/// Ids of processes, unique among those of all machines, past and present.
struct ProcessIds {
  std::string own;     ///< empty: launches are not told apart
  std::string parent;  ///< the one that started it
  std::string daemon;  ///< MPICH's launcher daemon above this process; empty if there is none
};

/// Returns the launch of this process, which is rank 0 of an engine of `ranks` ranks, from the environment of the
/// launcher and the batch system. Without a launcher the process is the launch. Pure.
[[nodiscard]] persist::LaunchInfo find_launch_info(
    const std::function<std::optional<std::string>(const std::string& name)>& variable, const ProcessIds& processes,
    int ranks);

/// Returns the batch system's job that this process runs in, as job_name() writes it; of LSF's arrays with the element.
/// Empty without one. Pure.
[[nodiscard]] std::string batch_job(const std::function<std::optional<std::string>(const std::string& name)>& variable);

}  // namespace kedge::start

// Who makes a start: which launch of a program, which part of it, and which task of a job array.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "persist/run_records.hpp"

namespace kedge::engine {

/// Pure. What the launcher and the batch system say in the environment of this process, which is rank 0 of an engine
/// of `ranks` ranks. `process` tells this process from all others, `parent` the one that started it; without a launcher
/// the process is the launch.
[[nodiscard]] persist::Starter find_starter(
    const std::function<std::optional<std::string>(const std::string& name)>& variable, const std::string& process,
    const std::string& parent, int ranks);

}  // namespace kedge::engine

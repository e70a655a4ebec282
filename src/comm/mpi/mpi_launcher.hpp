// Whether the launcher that started this process belongs to its MPI.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace kedge::comm {

/// Returns a warning for the user if MPI_COMM_WORLD has one process and a launcher's variable says that it started
/// several: then the launcher belongs to another MPI, and each process is a job of its own. `library` is MPI's name and
/// version.
[[nodiscard]] std::optional<std::string> launcher_warning(
    int world_size, const std::function<std::optional<std::string>(const std::string&)>& variable,
    std::string_view library);

/// Returns the ranks of MPI_COMM_WORLD that the launcher started as other programs than that of this rank, e.g. "ranks
/// 2 to 3"; empty if there are none, or the launcher does not say.
[[nodiscard]] std::string ranks_of_other_programs(
    int rank, int world_size, const std::function<std::optional<std::string>(const std::string&)>& variable);

}  // namespace kedge::comm

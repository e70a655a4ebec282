// Signs that more than one MPI is at work: two libraries in one process, or a launcher of another one.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kedge::comm {

/// "Open MPI", "MPICH" (with those that share its binary interface), or "MPI": what Kedge is compiled with.
[[nodiscard]] std::string_view mpi_name();

/// What to tell the user if Open MPI and MPICH are both among these paths of loaded libraries. `ours` is mpi_name().
[[nodiscard]] std::optional<std::string> two_mpi_libraries(const std::vector<std::string>& loaded,
                                                           std::string_view ours);

/// What to tell the user if MPI_COMM_WORLD has one process and a launcher's variable says that it started several:
/// then it belongs to another MPI, and each process is a job of its own. `library` is MPI's name and version.
[[nodiscard]] std::optional<std::string> launcher_warning(
    int world_size, const std::function<std::optional<std::string>(const std::string&)>& variable,
    std::string_view library);

}  // namespace kedge::comm

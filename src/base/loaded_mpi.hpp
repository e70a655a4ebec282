// Two MPI libraries in one process: its calls may go to either.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kedge {

/// A warning for the user if Open MPI and MPICH (or a library with MPICH's binary interface) are both among these paths
/// of loaded libraries. `ours` names the one that Kedge was built with.
[[nodiscard]] std::optional<std::string> two_mpi_warning(const std::vector<std::string>& loaded, std::string_view ours);

}  // namespace kedge

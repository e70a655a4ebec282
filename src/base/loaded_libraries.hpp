// The shared libraries that this process has loaded, and whether two MPI libraries are among them: calls may go to
// either.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kedge {

/// Local. Their paths, in the order in which the system looks names up; without the program itself.
[[nodiscard]] std::vector<std::string> loaded_libraries();

/// Local. How many libraries this process has loaded since it began: another number, and there may be other ones.
[[nodiscard]] std::uint64_t library_load_count() noexcept;

/// Local. The file that this address was loaded from; empty if the system does not say.
[[nodiscard]] std::string library_at(const void* address);

/// Local. Whether this address is in the program itself, and not in a shared library.
[[nodiscard]] bool is_in_program(const void* address);

/// A warning for the user if Open MPI and MPICH (or a library with MPICH's binary interface) are both among these paths
/// of loaded libraries. `ours` names the one that Kedge was built with.
[[nodiscard]] std::optional<std::string> two_mpi_warning(const std::vector<std::string>& loaded, std::string_view ours);

}  // namespace kedge

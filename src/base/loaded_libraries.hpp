// The shared libraries that this process has loaded, and whether two MPI libraries are among them: calls may go to
// either.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kedge {

/// Returns the paths of the shared libraries, without the program, in the order of symbol look-up.
[[nodiscard]] std::vector<std::string> loaded_libraries();

/// Returns how many libraries this process has loaded since it began: while the number stays, so does the list.
[[nodiscard]] std::uint64_t library_load_count() noexcept;

/// Returns the file that an address was loaded from; empty if the system does not say.
[[nodiscard]] std::string library_of_address(const void* address);

/// Whether an address is in the program itself, and not in a shared library.
[[nodiscard]] bool is_in_program(const void* address);

/// Returns a warning for the user if Open MPI and MPICH (or a library with MPICH's binary interface) are both among
/// these paths of loaded libraries. `ours` names the one that Kedge was built with.
[[nodiscard]] std::optional<std::string> two_mpi_warning(const std::vector<std::string>& loaded, std::string_view ours);

}  // namespace kedge

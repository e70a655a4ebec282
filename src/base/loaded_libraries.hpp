// The shared libraries that this process has loaded.
#pragma once

#include <cstdint>
#include <string>
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

}  // namespace kedge

// Which HDF5 libraries this process has loaded: an application's own may be another one than Kedge's.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

namespace kedge::format {

struct LoadedHdf5 {
  std::string path;
  std::array<unsigned, 3> version{};  ///< as the library itself says
  bool is_parallel = false;
  bool is_ours = false;  ///< Kedge's calls go to it
};

/// Local. In the order in which the system looks names up: one that is linked into the program first, by the program's
/// path, then shared libraries.
[[nodiscard]] std::vector<LoadedHdf5> loaded_hdf5();

/// A warning for the user if there are two HDF5 libraries and Kedge is part of the program itself: calls of the program
/// to HDF5 may go to both. A shared Kedge takes its own by itself, so then, and with one library, there is nothing to
/// say.
[[nodiscard]] std::optional<std::string> hdf5_warning(const std::vector<LoadedHdf5>& loaded, bool kedge_is_in_program);

/// Local. Whether this code is part of the program, and not of a shared library.
[[nodiscard]] bool is_in_program();

}  // namespace kedge::format

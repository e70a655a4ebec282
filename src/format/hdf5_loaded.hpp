// Which HDF5 libraries this process has loaded: the application may use another one than Kedge.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

namespace kedge::format {

struct LoadedHdf5 {
  std::string path;
  std::array<unsigned, 3> version{};  ///< as the library reports it
  bool is_parallel = false;
  bool is_ours = false;  ///< Kedge's calls reach this one
};

/// Local. The loaded HDF5 libraries in the order of symbol look-up: first the program itself, if HDF5 is linked into
/// it, then shared libraries.
[[nodiscard]] std::vector<LoadedHdf5> loaded_hdf5();

/// A warning for the user if two HDF5 libraries are loaded and Kedge is linked into the program: the program's HDF5
/// calls may then reach either one. A shared Kedge always reaches its own.
[[nodiscard]] std::optional<std::string> hdf5_warning(const std::vector<LoadedHdf5>& loaded, bool kedge_is_in_program);

/// Local. Whether this code is part of the program rather than of a shared library.
[[nodiscard]] bool is_in_program();

}  // namespace kedge::format

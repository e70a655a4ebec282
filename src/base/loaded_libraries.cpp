#include "base/loaded_libraries.hpp"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <charconv>
#include <cstddef>

#include "base/text.hpp"

namespace kedge {
namespace {

/// The number after "NAME.so.", or -1: another name, or none.
int library_version(std::string_view path, std::string_view name) {
  std::string_view file = path.substr(path.find_last_of('/') + 1);
  if (!file.starts_with(name)) return -1;
  file.remove_prefix(name.size());
  if (!file.starts_with(".so.")) return -1;
  file.remove_prefix(std::string_view(".so.").size());
  int version = -1;
  std::from_chars(file.data(), file.data() + file.size(), version);
  return version;
}

/// Open MPI's first libmpi.so of its present numbering is 20; the others' shared interface is 12.
constexpr int kOpenMpiFrom = 20;
constexpr int kMpichInterface = 12;

}  // namespace

std::vector<std::string> loaded_libraries() {
  std::vector<std::string> paths;
  dl_iterate_phdr(
      [](dl_phdr_info* object, std::size_t, void* all) {
        // The program is the first, and has no name here.
        const std::string name = object->dlpi_name == nullptr ? "" : object->dlpi_name;
        if (!name.empty()) static_cast<std::vector<std::string>*>(all)->push_back(name);
        return 0;
      },
      &paths);
  return paths;
}

std::uint64_t library_load_count() noexcept {
  std::uint64_t loads = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* object, std::size_t, void* all) {
        *static_cast<std::uint64_t*>(all) = object->dlpi_adds;
        return 1;  // the first one knows
      },
      &loads);
  return loads;
}

std::string library_of_address(const void* address) {
  Dl_info found{};
  return dladdr(address, &found) != 0 && found.dli_fname != nullptr ? found.dli_fname : "";
}

bool is_in_program(const void* address) {
  const std::string here = library_of_address(address);
  const std::vector<std::string> libraries = loaded_libraries();
  return std::ranges::find(libraries, here) == libraries.end();
}

std::optional<std::string> two_mpi_warning(const std::vector<std::string>& loaded, std::string_view ours) {
  std::string open_mpi;
  std::string mpich;
  for (const std::string& path : loaded) {
    if (library_version(path, "libmpi") >= kOpenMpiFrom) open_mpi = path;
    if (library_version(path, "libmpi") == kMpichInterface || library_version(path, "libmpich") == kMpichInterface)
      mpich = path;
  }
  if (open_mpi.empty() || mpich.empty()) return std::nullopt;
  return compose(
      "this process has loaded two MPI libraries, {} and {}; compile and link the program with the wrapper (mpif90, "
      "mpicc, mpicxx) of the MPI that Kedge was built with, {}",
      open_mpi, mpich, ours);
}

}  // namespace kedge

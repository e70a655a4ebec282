#include "base/loaded_libraries.hpp"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <cstddef>

namespace kedge {

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

std::string library_at(const void* address) {
  Dl_info found{};
  return dladdr(address, &found) != 0 && found.dli_fname != nullptr ? found.dli_fname : "";
}

bool is_in_program(const void* address) {
  const std::string here = library_at(address);
  const std::vector<std::string> libraries = loaded_libraries();
  return std::ranges::find(libraries, here) == libraries.end();
}

}  // namespace kedge

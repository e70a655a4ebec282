#include "device/loaded_driver.hpp"

#include <dlfcn.h>

#include "base/loaded_libraries.hpp"

namespace kedge::device {

void* LoadedDriver::handle() {
  if (void* known = handle_) return known;
  const std::uint64_t loads = library_load_count();
  if (load_count_at_last_search_ == loads) return nullptr;
  void* found = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  handle_ = found;
  if (found == nullptr) load_count_at_last_search_ = loads;
  return found;
}

}  // namespace kedge::device

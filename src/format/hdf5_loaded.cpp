#include "format/hdf5_loaded.hpp"

#include <dlfcn.h>
#include <hdf5.h>

#include <string_view>

#include "base/loaded_libraries.hpp"
#include "base/text.hpp"

namespace kedge::format {
namespace {

/// True for libhdf5.so.103, libhdf5_serial.so.103 or libhdf5_openmpi-1.10.so; false for libraries built on HDF5, such
/// as libhdf5_hl.so.
bool is_hdf5(std::string_view path) {
  std::string_view name = path.substr(path.find_last_of('/') + 1);
  if (!name.starts_with("libhdf5")) return false;
  name.remove_prefix(std::string_view("libhdf5").size());
  for (const std::string_view kind : {"_serial", "_openmpi", "_mpich", "_parallel"}) {
    if (name.starts_with(kind)) {
      name.remove_prefix(kind.size());
      break;
    }
  }
  return name.starts_with(".so") || name.starts_with("-");
}

/// Searches the object itself; dlsym on its handle would also search its dependencies.
void* symbol_in(void* object, const std::string& path, const char* name) {
  void* const address = dlsym(object, name);
  return address != nullptr && library_of_address(address) == path ? address : nullptr;
}

std::string describe_library(const LoadedHdf5& library) {
  return compose("{} ({}.{}.{}, {})", library.path, library.version[0], library.version[1], library.version[2],
                 library.is_parallel ? "parallel" : "serial");
}

/// An HDF5 library linked statically into the program.
LoadedHdf5 linked_hdf5(const std::string& program) {
  LoadedHdf5 library{program, {}, false, true};
  H5get_libversion(&library.version[0], &library.version[1], &library.version[2]);
#ifdef H5_HAVE_PARALLEL
  library.is_parallel = true;
#endif
  return library;
}

}  // namespace

std::vector<LoadedHdf5> loaded_hdf5() {
  const auto* const our_open = reinterpret_cast<const void*>(&H5open);
  const std::string ours = library_of_address(our_open);
  std::vector<LoadedHdf5> loaded;
  if (kedge::is_in_program(our_open)) loaded.push_back(linked_hdf5(ours));
  for (const std::string& path : loaded_libraries()) {
    if (!is_hdf5(path)) continue;
    void* const object = dlopen(path.c_str(), RTLD_LAZY | RTLD_NOLOAD);
    if (object == nullptr) continue;
    LoadedHdf5 library{path, {}, false, path == ours};
    using GetVersion = herr_t (*)(unsigned*, unsigned*, unsigned*);
    if (auto get = reinterpret_cast<GetVersion>(symbol_in(object, path, "H5get_libversion"))) {
      get(&library.version[0], &library.version[1], &library.version[2]);
    }
    library.is_parallel = symbol_in(object, path, "H5Pset_fapl_mpio") != nullptr;
    loaded.push_back(std::move(library));
    dlclose(object);
  }
  return loaded;
}

std::optional<std::string> hdf5_warning(const std::vector<LoadedHdf5>& loaded, bool kedge_is_in_program) {
  if (loaded.size() < 2 || !kedge_is_in_program) return std::nullopt;
  std::string text = "this process has more than one HDF5 library: ";
  for (const LoadedHdf5& library : loaded) {
    if (&library != &loaded.front()) text += " and ";
    text += describe_library(library);
    if (library.is_ours) text += ", which Kedge uses";
  }
  return text +
         "; if HDF5 reports errors such as \"not a file access list\", build Kedge with the program's HDF5 (HDF5_ROOT) "
         "or as a shared library (BUILD_SHARED_LIBS=ON)";
}

bool is_in_program() { return kedge::is_in_program(reinterpret_cast<const void*>(&loaded_hdf5)); }

}  // namespace kedge::format

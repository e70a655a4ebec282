#include "format/hdf5_loaded.hpp"

#include <dlfcn.h>
#include <hdf5.h>
#include <link.h>

#include <string_view>

#include "base/text.hpp"

namespace kedge::format {
namespace {

/// libhdf5.so.103, libhdf5_serial.so.103, libhdf5_openmpi-1.10.so; not those that are built on it, such as
/// libhdf5_hl.so.
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

int note_path(dl_phdr_info* object, std::size_t /*size*/, void* paths) {
  if (object->dlpi_name != nullptr && is_hdf5(object->dlpi_name)) {
    static_cast<std::vector<std::string>*>(paths)->emplace_back(object->dlpi_name);
  }
  return 0;
}

std::string file_of(const void* address) {
  Dl_info found{};
  return dladdr(address, &found) != 0 && found.dli_fname != nullptr ? found.dli_fname : "";
}

/// In the object itself; a look-up by its handle also searches what it depends on.
void* symbol_in(void* object, const std::string& path, const char* name) {
  void* const address = dlsym(object, name);
  return address != nullptr && file_of(address) == path ? address : nullptr;
}

std::string words(const LoadedHdf5& library) {
  return compose("{} ({}.{}.{}, {})", library.path, library.version[0], library.version[1], library.version[2],
                 library.is_parallel ? "parallel" : "serial");
}

}  // namespace

std::vector<LoadedHdf5> loaded_hdf5() {
  std::vector<std::string> paths;
  dl_iterate_phdr(note_path, &paths);
  const std::string ours = file_of(reinterpret_cast<const void*>(&H5open));
  std::vector<LoadedHdf5> loaded;
  for (const std::string& path : paths) {
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
    text += words(library);
    if (library.is_ours) text += ", which Kedge uses";
  }
  return text +
         "; if HDF5 reports errors such as \"not a file access list\", build Kedge with the program's HDF5 (HDF5_ROOT) "
         "or as a shared library (BUILD_SHARED_LIBS=ON)";
}

bool is_in_program() {
  // The program is what the system loaded first, and has no name there.
  const std::string here = file_of(reinterpret_cast<const void*>(&is_in_program));
  std::vector<std::string> names;
  dl_iterate_phdr(
      [](dl_phdr_info* object, std::size_t, void* all) {
        static_cast<std::vector<std::string>*>(all)->emplace_back(object->dlpi_name == nullptr ? ""
                                                                                               : object->dlpi_name);
        return 0;
      },
      &names);
  for (const std::string& name : names) {
    if (!name.empty() && name == here) return false;
  }
  return true;
}

}  // namespace kedge::format

#include "device/cufile.hpp"

#include <dlfcn.h>

#include <string_view>

#include "base/run_on_threads.hpp"
#include "base/text.hpp"
#include "kedge/error.hpp"

namespace kedge::device {
namespace {

template <class Function>
bool find_function(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));  // NOLINT(*-reinterpret-cast): what dlsym is for
  return function != nullptr;
}

template <class Function>
void require_function(void* library, const char* name, Function& function) {
  if (find_function(library, name, function)) return;
  throw Error(ErrorCode::bad_state, compose("libcufile is missing {}; update GPUDirect Storage", name));
}

std::string_view error_text(int code) noexcept {
  switch (code) {
    case 5001: return "the driver nvidia-fs is not loaded";
    case 5004: return "the version of the driver nvidia-fs is not supported";
    case 5005: return "the version of the driver nvidia-fs is unreadable";
    case 5007: return "GPUDirect Storage is not supported on this platform";
    case 5008: return "GPUDirect Storage is not supported for this file";
    case 5009: return "GPUDirect Storage is not supported by this GPU";
    case 5010: return "a call to the driver nvidia-fs failed";
    case 5011: return "a call to the CUDA driver failed";
    case 5012: return "invalid device pointer";
    case 5013: return "invalid type of memory";
    case 5014: return "the memory is smaller than the write";
    case 5015: return "the memory is of another CUDA context";
    case 5018: return "unsupported type of file";
    case 5020: return "the file was opened without O_DIRECT";
    case 5025: return "permission denied";
    case 5028: return "the file is registered already";
    case 5033: return "the driver nvidia-fs could not be initialized";
    case 5034: return "GPUDirect Storage is disabled for this file by configuration (cufile.json)";
    case 5036: return "GPU memory could not be pinned";
    case 5043: return "out of memory";
    case 5044: return "I/O error";
    default: return "see the cuFile API reference";
  }
}

}  // namespace

/// Threads that cuFile starts must not receive the application's signals.
std::unique_ptr<const CuFile> CuFile::load(const char* name) {
  const ScopedSignalBlock blocked;
  void* library = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* why = ::dlerror();
    throw Error(ErrorCode::bad_state,
                compose("cannot load cuFile ({}); install GPUDirect Storage, or add its directory "
                        "to LD_LIBRARY_PATH",
                        why == nullptr ? name : why));
  }
  auto cufile = std::make_unique<CuFile>();
  require_function(library, "cuFileDriverOpen", cufile->driver_open);
  require_function(library, "cuFileDriverGetProperties", cufile->driver_get_properties);
  require_function(library, "cuFileHandleRegister", cufile->handle_register);
  require_function(library, "cuFileHandleDeregister", cufile->handle_deregister);
  require_function(library, "cuFileWrite", cufile->write);
  (void)find_function(library, "cuFileGetParameterBool", cufile->get_flag);
  return cufile;
}

std::string cufile_error_text(int code) { return compose("cuFile reports {} ({})", code, error_text(code)); }

}  // namespace kedge::device

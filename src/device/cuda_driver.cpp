#include "device/cuda_driver.hpp"

#include <dlfcn.h>

#include "base/text.hpp"
#include "kedge/error.hpp"

namespace kedge::device {
namespace {

template <class Function>
void require_driver_function(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));  // NOLINT(*-reinterpret-cast): what dlsym is for
  if (function != nullptr) return;
  throw Error(ErrorCode::device_failed, compose("the CUDA driver is missing {}; update the driver", name));
}

/// The error code, depending on whether the call or the device failed.
ErrorCode code_of(CUresult result) noexcept {
  switch (result) {
    case CUDA_ERROR_OUT_OF_MEMORY: return ErrorCode::no_space;
    case CUDA_ERROR_INVALID_VALUE:
    case CUDA_ERROR_INVALID_HANDLE:
    case CUDA_ERROR_INVALID_CONTEXT:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED: return ErrorCode::invalid_argument;
    case CUDA_ERROR_NOT_PERMITTED:
    case CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED:
    case CUDA_ERROR_STREAM_CAPTURE_INVALIDATED:
    case CUDA_ERROR_STREAM_CAPTURE_MERGE:
    case CUDA_ERROR_STREAM_CAPTURE_UNMATCHED:
    case CUDA_ERROR_STREAM_CAPTURE_UNJOINED:
    case CUDA_ERROR_STREAM_CAPTURE_ISOLATION:
    case CUDA_ERROR_STREAM_CAPTURE_IMPLICIT:
    case CUDA_ERROR_CAPTURED_EVENT:
    case CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD: return ErrorCode::bad_state;
    // After these errors CUDA refuses all further calls of the process.
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_NVLINK_UNCORRECTABLE:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_MPS_CLIENT_TERMINATED:
    case CUDA_ERROR_UNKNOWN: return ErrorCode::device_failed;
    default: return ErrorCode::io;
  }
}

std::string_view advice(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::no_space: return "free GPU memory, or page-lockable host memory";
    case ErrorCode::invalid_argument: return "check the pointer, the shape and the stream that were given";
    case ErrorCode::bad_state: return "save and load cannot be called during stream capture or from a host function";
    case ErrorCode::device_failed: return "CUDA is no longer usable in this process: end the job and start it again";
    default: return "look the error up in the documentation of CUDA's driver";
  }
}

}  // namespace

std::unique_ptr<const CudaDriver> CudaDriver::load_from(void* library) {
  auto driver = std::make_unique<CudaDriver>();
  require_driver_function(library, "cuGetErrorName", driver->get_error_name);
  require_driver_function(library, "cuGetErrorString", driver->get_error_string);
  require_driver_function(library, "cuPointerGetAttributes", driver->pointer_get_attributes);
  require_driver_function(library, "cuDeviceGet", driver->device_get);
  require_driver_function(library, "cuDevicePrimaryCtxRetain", driver->primary_context_retain);
  require_driver_function(library, "cuCtxPushCurrent_v2", driver->context_push);
  require_driver_function(library, "cuCtxPopCurrent_v2", driver->context_pop);
  require_driver_function(library, "cuCtxGetCurrent", driver->context_get_current);
  require_driver_function(library, "cuCtxGetDevice", driver->context_get_device);
  require_driver_function(library, "cuThreadExchangeStreamCaptureMode", driver->exchange_capture_mode);
  require_driver_function(library, "cuCtxSynchronize", driver->context_synchronize);
  require_driver_function(library, "cuStreamCreate", driver->stream_create);
  require_driver_function(library, "cuStreamDestroy_v2", driver->stream_destroy);
  require_driver_function(library, "cuStreamSynchronize", driver->stream_synchronize);
  require_driver_function(library, "cuMemcpyDtoHAsync_v2", driver->copy_to_host);
  require_driver_function(library, "cuMemcpyHtoDAsync_v2", driver->copy_to_device);
  require_driver_function(library, "cuMemcpyDtoDAsync_v2", driver->copy_within_device);
  require_driver_function(library, "cuMemAlloc_v2", driver->memory_alloc);
  require_driver_function(library, "cuMemFree_v2", driver->memory_free);
  require_driver_function(library, "cuMemHostAlloc", driver->host_alloc);
  require_driver_function(library, "cuMemFreeHost", driver->host_free);
  require_driver_function(library, "cuMemHostRegister_v2", driver->host_register);
  require_driver_function(library, "cuMemHostUnregister", driver->host_unregister);
  require_driver_function(library, "cuModuleLoadData", driver->module_load);
  require_driver_function(library, "cuModuleUnload", driver->module_unload);
  require_driver_function(library, "cuModuleGetFunction", driver->module_get_function);
  require_driver_function(library, "cuFuncSetAttribute", driver->function_set_attribute);
  require_driver_function(library, "cuLaunchKernel", driver->launch);
  return driver;
}

void CudaDriver::require_success(CUresult result, std::string_view action) const {
  if (result == CUDA_SUCCESS) return;
  const char* name = nullptr;
  const char* words = nullptr;
  if (get_error_name(result, &name) != CUDA_SUCCESS || name == nullptr) name = "an unknown error";
  if (get_error_string(result, &words) != CUDA_SUCCESS || words == nullptr) words = "no description";
  const ErrorCode code = code_of(result);
  throw Error(code, compose("cannot {}: CUDA reports {} ({}); {}", action, name, words, advice(code)));
}

}  // namespace kedge::device

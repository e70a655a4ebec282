#include "device/cuda_driver.hpp"

#include <dlfcn.h>

#include "base/text.hpp"
#include "kedge/error.hpp"

namespace kedge::device {
namespace {

template <class Function>
void find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));  // NOLINT(*-reinterpret-cast): what dlsym is for
  if (function != nullptr) return;
  throw Error(ErrorCode::device_failed, compose("the CUDA driver is missing {}; update the driver", name));
}

/// What a result says of the call, and of the device for all calls after it.
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
    // After these CUDA refuses every further call of the process.
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

std::unique_ptr<const CudaDriver> CudaDriver::of(void* library) {
  auto driver = std::make_unique<CudaDriver>();
  find(library, "cuGetErrorName", driver->get_error_name);
  find(library, "cuGetErrorString", driver->get_error_string);
  find(library, "cuPointerGetAttributes", driver->pointer_get_attributes);
  find(library, "cuDeviceGet", driver->device_get);
  find(library, "cuDevicePrimaryCtxRetain", driver->primary_context_retain);
  find(library, "cuCtxPushCurrent_v2", driver->context_push);
  find(library, "cuCtxPopCurrent_v2", driver->context_pop);
  find(library, "cuCtxGetCurrent", driver->context_get_current);
  find(library, "cuCtxGetDevice", driver->context_get_device);
  find(library, "cuThreadExchangeStreamCaptureMode", driver->exchange_capture_mode);
  find(library, "cuCtxSynchronize", driver->context_synchronize);
  find(library, "cuStreamCreate", driver->stream_create);
  find(library, "cuStreamDestroy_v2", driver->stream_destroy);
  find(library, "cuStreamSynchronize", driver->stream_synchronize);
  find(library, "cuMemcpyDtoHAsync_v2", driver->copy_to_host);
  find(library, "cuMemcpyHtoDAsync_v2", driver->copy_to_device);
  find(library, "cuMemcpyDtoDAsync_v2", driver->copy_within_device);
  find(library, "cuMemAlloc_v2", driver->memory_alloc);
  find(library, "cuMemFree_v2", driver->memory_free);
  find(library, "cuMemHostAlloc", driver->host_alloc);
  find(library, "cuMemFreeHost", driver->host_free);
  find(library, "cuMemHostRegister_v2", driver->host_register);
  find(library, "cuMemHostUnregister", driver->host_unregister);
  find(library, "cuModuleLoadData", driver->module_load);
  find(library, "cuModuleUnload", driver->module_unload);
  find(library, "cuModuleGetFunction", driver->module_get_function);
  find(library, "cuFuncSetAttribute", driver->function_set_attribute);
  find(library, "cuLaunchKernel", driver->launch);
  return driver;
}

void CudaDriver::check(CUresult result, std::string_view what) const {
  if (result == CUDA_SUCCESS) return;
  const char* name = nullptr;
  const char* words = nullptr;
  if (get_error_name(result, &name) != CUDA_SUCCESS || name == nullptr) name = "an unknown error";
  if (get_error_string(result, &words) != CUDA_SUCCESS || words == nullptr) words = "no description";
  const ErrorCode code = code_of(result);
  throw Error(code, compose("cannot {}: CUDA reports {} ({}); {}", what, name, words, advice(code)));
}

}  // namespace kedge::device

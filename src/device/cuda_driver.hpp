// The CUDA driver that the application has loaded. Kedge does not link CUDA: one binary works with and without it.
#pragma once

#include <cuda.h>
#include <cudaTypedefs.h>

#include <memory>
#include <string_view>

namespace kedge::device {

/// The driver functions that Kedge calls.
struct CudaDriver {
  PFN_cuGetErrorName_v6000 get_error_name = nullptr;
  PFN_cuGetErrorString_v6000 get_error_string = nullptr;
  PFN_cuPointerGetAttributes_v7000 pointer_get_attributes = nullptr;
  PFN_cuDeviceGet_v2000 device_get = nullptr;
  PFN_cuDevicePrimaryCtxRetain_v7000 primary_context_retain = nullptr;
  PFN_cuCtxPushCurrent_v4000 context_push = nullptr;
  PFN_cuCtxPopCurrent_v4000 context_pop = nullptr;
  PFN_cuCtxGetCurrent_v4000 context_get_current = nullptr;
  PFN_cuCtxGetDevice_v2000 context_get_device = nullptr;
  PFN_cuThreadExchangeStreamCaptureMode_v10010 exchange_capture_mode = nullptr;
  PFN_cuCtxSynchronize_v2000 context_synchronize = nullptr;
  PFN_cuStreamCreate_v2000 stream_create = nullptr;
  PFN_cuStreamDestroy_v4000 stream_destroy = nullptr;
  PFN_cuStreamSynchronize_v2000 stream_synchronize = nullptr;
  PFN_cuMemcpyDtoHAsync_v3020 copy_to_host = nullptr;  ///< refuses host pointers, unlike cuMemcpy
  PFN_cuMemcpyHtoDAsync_v3020 copy_to_device = nullptr;
  PFN_cuMemcpyDtoDAsync_v3020 copy_within_device = nullptr;
  PFN_cuMemAlloc_v3020 memory_alloc = nullptr;
  PFN_cuMemFree_v3020 memory_free = nullptr;
  PFN_cuMemHostAlloc_v2020 host_alloc = nullptr;
  PFN_cuMemFreeHost_v2000 host_free = nullptr;
  PFN_cuMemHostRegister_v6050 host_register = nullptr;
  PFN_cuMemHostUnregister_v4000 host_unregister = nullptr;
  PFN_cuModuleLoadData_v2000 module_load = nullptr;
  PFN_cuModuleUnload_v2000 module_unload = nullptr;
  PFN_cuModuleGetFunction_v2000 module_get_function = nullptr;
  PFN_cuFuncSetAttribute_v9000 function_set_attribute = nullptr;
  PFN_cuLaunchKernel_v4000 launch = nullptr;

  /// Throws Error{device_failed} if the library lacks a function.
  [[nodiscard]] static std::unique_ptr<const CudaDriver> load_from(void* library);

  /// Throws Error unless the result is a success. `action` names the action, e.g. "copy from GPU 0".
  void require_success(CUresult result, std::string_view action) const;
};

}  // namespace kedge::device

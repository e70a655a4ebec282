// Errors of CUDA as exceptions.
#pragma once

#include <cuda_runtime_api.h>

#include <stdexcept>
#include <string>

/// HEAT_CUDA_CHECK(cudaMalloc(...)): throws unless the call succeeded.
#define HEAT_CUDA_CHECK(call) ::heat_cuda::check((call), #call)

namespace heat_cuda {

/// What to do about an error, after a semicolon.
inline const char* advice(cudaError_t error) {
  switch (error) {
    case cudaErrorMemoryAllocation: return "; use more GPUs, or a smaller --width and --height";
    case cudaErrorNoKernelImageForDevice: return "; build with -DCMAKE_CUDA_ARCHITECTURES of this GPU, or native";
    case cudaErrorDevicesUnavailable: return "; the GPU is in exclusive mode and in use: see nvidia-smi";
    case cudaErrorIllegalAddress: return "; run it under compute-sanitizer to find the access";
    default: return "; look the error up in the documentation of the CUDA Runtime API";
  }
}

/// Throws std::runtime_error with the call, what CUDA reports of it, and what to do. A kernel that failed is reported
/// by a later call than the one that launched it.
inline void check(cudaError_t result, const char* call) {
  if (result == cudaSuccess) return;
  throw std::runtime_error(std::string(call) + " failed: " + cudaGetErrorString(result) + " (" +
                           cudaGetErrorName(result) + ")" + advice(result));
}

}  // namespace heat_cuda

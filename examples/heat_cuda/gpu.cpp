#include "gpu.hpp"

#include <cuda_runtime_api.h>

#include "cuda_check.hpp"

namespace heat_cuda {
namespace {

/// "13.0" of 13000.
std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

}  // namespace

std::string why_no_gpu() {
  // The runtime reports a missing driver as one that is too old, so the driver is asked for first.
  int driver = 0;
  if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0) return "this machine has no CUDA driver";
  int gpus = 0;
  const cudaError_t result = cudaGetDeviceCount(&gpus);
  if (result == cudaErrorInsufficientDriver) {
    return "the driver supports CUDA " + version_text(driver) + ", and this program was built with " +
           version_text(CUDART_VERSION) + ": update the driver, or build with an older toolkit";
  }
  if (result == cudaErrorNoDevice || (result == cudaSuccess && gpus == 0)) {
    return "CUDA reports no device (check CUDA_VISIBLE_DEVICES)";
  }
  return result == cudaSuccess ? "" : std::string("CUDA reports: ") + cudaGetErrorString(result);
}

std::string use_gpu(int local_rank) {
  int gpus = 0;
  HEAT_CUDA_CHECK(cudaGetDeviceCount(&gpus));
  const int mine = local_rank % gpus;
  HEAT_CUDA_CHECK(cudaSetDevice(mine));
  cudaDeviceProp properties{};
  HEAT_CUDA_CHECK(cudaGetDeviceProperties(&properties, mine));
  return std::string(properties.name) + ", device " + std::to_string(mine) + " of " + std::to_string(gpus);
}

}  // namespace heat_cuda

// A GPU of CUDA, as a program that computes on one has it: the first one, with its primary context.
#pragma once

#include <cuda.h>
#include <cudaTypedefs.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace kedge::gpu {

/// The driver's functions that tests and benchmarks call. Each throws std::runtime_error with CUDA's words.
class Gpu {
 public:
  /// Null, and why in `why`, where there is none.
  [[nodiscard]] static std::unique_ptr<Gpu> first(std::string& why);

  [[nodiscard]] std::string name() const;
  /// E.g. 13000.
  [[nodiscard]] int driver_version() const;
  [[nodiscard]] bool has_kernels() const noexcept { return module_load_ != nullptr; }

  /// The context becomes this thread's.
  void use() const;
  [[nodiscard]] CUcontext current() const;
  void synchronize() const;

  [[nodiscard]] CUstream make_stream() const;
  void wait(CUstream stream) const;
  void fill(CUdeviceptr to, unsigned char value, std::size_t size_bytes, CUstream stream) const;
  void copy(CUdeviceptr to, CUdeviceptr from, std::size_t size_bytes, CUstream stream) const;
  void upload(CUdeviceptr to, const std::byte* from, std::size_t size_bytes) const;
  [[nodiscard]] std::vector<std::byte> download(CUdeviceptr from, std::size_t size_bytes) const;
  /// Runs a kernel that writes where nothing is: the process loses the device.
  void break_device() const;
  /// Of Kedge's own; null, if Kedge was built without.
  [[nodiscard]] CUfunction kernel(const char* name, unsigned shared_bytes) const;
  void launch(CUfunction kernel, unsigned blocks, unsigned threads, unsigned shared_bytes, void** arguments) const;

  [[nodiscard]] CUdeviceptr allocate(std::size_t size_bytes) const;
  /// Of the device's pool, which is of no context; 0 if there is none.
  [[nodiscard]] CUdeviceptr allocate_of_pool(std::size_t size_bytes, CUstream stream) const;
  void free(CUdeviceptr address) const;
  [[nodiscard]] std::byte* allocate_pinned(std::size_t size_bytes) const;
  void free_pinned(std::byte* data) const;

 private:
  void check(CUresult result, const char* what) const;

  PFN_cuGetErrorString_v6000 error_string_ = nullptr;
  PFN_cuDeviceGetName_v2000 device_name_ = nullptr;
  PFN_cuDriverGetVersion_v2020 version_ = nullptr;
  PFN_cuCtxSetCurrent_v4000 set_current_ = nullptr;
  PFN_cuCtxGetCurrent_v4000 get_current_ = nullptr;
  PFN_cuCtxSynchronize_v2000 synchronize_ = nullptr;
  PFN_cuStreamCreate_v2000 stream_create_ = nullptr;
  PFN_cuStreamSynchronize_v2000 stream_synchronize_ = nullptr;
  PFN_cuMemsetD8Async_v3020 memset_ = nullptr;
  PFN_cuMemcpyAsync_v4000 memcpy_ = nullptr;
  PFN_cuMemcpyHtoD_v3020 to_device_ = nullptr;
  PFN_cuMemcpyDtoH_v3020 to_host_ = nullptr;
  PFN_cuMemAlloc_v3020 alloc_ = nullptr;
  PFN_cuMemFree_v3020 free_ = nullptr;
  PFN_cuMemAllocAsync_v11020 pool_alloc_ = nullptr;  // may be null, like what follows
  PFN_cuModuleLoadData_v2000 module_load_ = nullptr;
  PFN_cuModuleGetFunction_v2000 module_function_ = nullptr;
  PFN_cuFuncSetAttribute_v9000 function_set_ = nullptr;
  PFN_cuLaunchKernel_v4000 launch_ = nullptr;
  PFN_cuMemHostAlloc_v2020 host_alloc_ = nullptr;
  PFN_cuMemFreeHost_v2000 host_free_ = nullptr;
  CUdevice device_ = 0;
  CUcontext context_ = nullptr;
};

/// Memory of the GPU, freed with this.
class Array {
 public:
  Array(const Gpu& gpu, std::size_t size_bytes) : gpu_(gpu), size_bytes_(size_bytes), at(gpu.allocate(size_bytes)) {}
  ~Array() { gpu_.free(at); }
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;
  [[nodiscard]] void* address() const noexcept { return reinterpret_cast<void*>(at); }  // NOLINT
  [[nodiscard]] std::vector<std::byte> contents() const { return gpu_.download(at, size_bytes_); }

 private:
  const Gpu& gpu_;
  std::size_t size_bytes_;

 public:
  const CUdeviceptr at;
};

/// What a checkpoint may have; other bytes for each seed.
[[nodiscard]] std::vector<std::byte> noise(std::size_t size_bytes, std::uint32_t seed);

}  // namespace kedge::gpu

#include "gpu/gpu.hpp"

#include <dlfcn.h>

#include <array>
#include <stdexcept>

#include "device/kernels/image.hpp"

namespace kedge::gpu {
namespace {

template <class Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));  // NOLINT(*-reinterpret-cast)
  return function != nullptr;
}

/// Stores to the address 0.
constexpr const char* kBreaks = R"(.version 7.0
.target sm_52
.address_size 64
.visible .entry breaks() {
  .reg .u64 %at;
  .reg .u32 %value;
  mov.u64 %at, 0;
  mov.u32 %value, 1;
  st.global.u32 [%at], %value;
  ret;
}
)";

}  // namespace

std::unique_ptr<Gpu> Gpu::first(std::string& why) {
  void* library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) {
    why = std::string("no CUDA driver: ") + ::dlerror();
    return nullptr;
  }
  auto gpu = std::make_unique<Gpu>();
  PFN_cuInit_v2000 init = nullptr;
  PFN_cuDeviceGetCount_v2000 count = nullptr;
  PFN_cuDeviceGet_v2000 get = nullptr;
  PFN_cuDevicePrimaryCtxRetain_v7000 retain = nullptr;
  const bool found =
      find(library, "cuInit", init) && find(library, "cuDeviceGetCount", count) && find(library, "cuDeviceGet", get) &&
      find(library, "cuDevicePrimaryCtxRetain", retain) && find(library, "cuGetErrorString", gpu->error_string_) &&
      find(library, "cuDeviceGetName", gpu->device_name_) && find(library, "cuDriverGetVersion", gpu->version_) &&
      find(library, "cuCtxSetCurrent", gpu->set_current_) && find(library, "cuCtxGetCurrent", gpu->get_current_) &&
      find(library, "cuCtxSynchronize", gpu->synchronize_) && find(library, "cuStreamCreate", gpu->stream_create_) &&
      find(library, "cuStreamSynchronize", gpu->stream_synchronize_) &&
      find(library, "cuMemsetD8Async", gpu->memset_) && find(library, "cuMemcpyAsync", gpu->memcpy_) &&
      find(library, "cuMemcpyHtoD_v2", gpu->to_device_) && find(library, "cuMemcpyDtoH_v2", gpu->to_host_) &&
      find(library, "cuMemAlloc_v2", gpu->alloc_) && find(library, "cuMemFree_v2", gpu->free_) &&
      find(library, "cuMemHostAlloc", gpu->host_alloc_) && find(library, "cuMemFreeHost", gpu->host_free_);
  if (!found) {
    why = "the CUDA driver is too old";
    return nullptr;
  }
  (void)find(library, "cuMemAllocAsync", gpu->pool_alloc_);
  (void)find(library, "cuModuleLoadData", gpu->module_load_);
  (void)find(library, "cuModuleGetFunction", gpu->module_function_);
  (void)find(library, "cuFuncSetAttribute", gpu->function_set_);
  (void)find(library, "cuLaunchKernel", gpu->launch_);
  int devices = 0;
  if (init(0) != CUDA_SUCCESS || count(&devices) != CUDA_SUCCESS || devices == 0) {
    why = "the CUDA driver finds no GPU";
    return nullptr;
  }
  gpu->check(get(&gpu->device_, 0), "find the GPU");
  gpu->check(retain(&gpu->context_, gpu->device_), "use the GPU");
  gpu->use();
  return gpu;
}

void Gpu::check(CUresult result, const char* what) const {
  if (result == CUDA_SUCCESS) return;
  const char* words = nullptr;
  (void)error_string_(result, &words);
  throw std::runtime_error(std::string("cannot ") + what + ": " + (words == nullptr ? "an unknown error" : words));
}

std::string Gpu::name() const {
  std::array<char, 256> text{};
  check(device_name_(text.data(), text.size(), device_), "ask for the GPU's name");
  return text.data();
}

int Gpu::driver_version() const {
  int version = 0;
  check(version_(&version), "ask for the driver's version");
  return version;
}

void Gpu::use() const { check(set_current_(context_), "use the GPU"); }

CUcontext Gpu::current() const {
  CUcontext context = nullptr;
  check(get_current_(&context), "ask for the context");
  return context;
}

void Gpu::synchronize() const { check(synchronize_(), "wait for the GPU"); }

CUstream Gpu::make_stream() const {
  CUstream stream = nullptr;
  check(stream_create_(&stream, CU_STREAM_NON_BLOCKING), "make a stream");
  return stream;
}

void Gpu::wait(CUstream stream) const { check(stream_synchronize_(stream), "wait for a stream"); }

void Gpu::fill(CUdeviceptr to, unsigned char value, std::size_t size_bytes, CUstream stream) const {
  check(memset_(to, value, size_bytes, stream), "fill memory");
}

void Gpu::copy(CUdeviceptr to, CUdeviceptr from, std::size_t size_bytes, CUstream stream) const {
  check(memcpy_(to, from, size_bytes, stream), "copy memory");
}

void Gpu::upload(CUdeviceptr to, const std::byte* from, std::size_t size_bytes) const {
  check(to_device_(to, from, size_bytes), "copy to the GPU");
}

std::vector<std::byte> Gpu::download(CUdeviceptr from, std::size_t size_bytes) const {
  std::vector<std::byte> bytes(size_bytes);
  check(to_host_(bytes.data(), from, size_bytes), "copy from the GPU");
  return bytes;
}

void Gpu::break_device() const {
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  check(module_load_(&module, kBreaks), "load a kernel");
  check(module_function_(&function, module, "breaks"), "find a kernel");
  check(launch_(function, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr), "launch a kernel");
}

CUfunction Gpu::kernel(const char* name, unsigned shared_bytes) const {
  if (device::kernel_image() == nullptr) return nullptr;
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  check(module_load_(&module, device::kernel_image()), "load kernels");
  check(module_function_(&function, module, name), "find a kernel");
  check(function_set_(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, static_cast<int>(shared_bytes)),
        "give a kernel its memory");
  return function;
}

void Gpu::launch(CUfunction kernel, unsigned blocks, unsigned threads, unsigned shared_bytes, void** arguments) const {
  check(launch_(kernel, blocks, 1, 1, threads, 1, 1, shared_bytes, nullptr, arguments, nullptr), "launch a kernel");
}

CUdeviceptr Gpu::allocate(std::size_t size_bytes) const {
  CUdeviceptr address = 0;
  check(alloc_(&address, size_bytes), "allocate memory of the GPU");
  return address;
}

CUdeviceptr Gpu::allocate_of_pool(std::size_t size_bytes, CUstream stream) const {
  CUdeviceptr address = 0;
  if (pool_alloc_ == nullptr || pool_alloc_(&address, size_bytes, stream) != CUDA_SUCCESS) return 0;
  return address;
}

void Gpu::free(CUdeviceptr address) const { (void)free_(address); }

std::byte* Gpu::allocate_pinned(std::size_t size_bytes) const {
  void* data = nullptr;
  check(host_alloc_(&data, size_bytes, CU_MEMHOSTALLOC_PORTABLE), "pin host memory");
  return static_cast<std::byte*>(data);
}

void Gpu::free_pinned(std::byte* data) const { (void)host_free_(data); }

std::vector<std::byte> noise(std::size_t size_bytes, std::uint32_t seed) {
  std::vector<std::byte> bytes(size_bytes);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>((seed = seed * 1664525U + 1013904223U) >> 24U);
  return bytes;
}

}  // namespace kedge::gpu

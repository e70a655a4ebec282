// What examples/heat_cuda calls of CUDA's runtime, over the fake driver (unit/device/fake_cuda.cpp): device memory that
// the host cannot touch, and streams that run when they are waited for. Its kernel runs on the processor. So the
// program runs as it is where there is no GPU; what CUDA makes of it is tested on one alone.
#include <cuda_runtime_api.h>

#include <array>
#include <cstring>
#include <memory>

#include "gpu/heat_on_host.hpp"
#include "heat_cuda/kernels.hpp"
#include "unit/device/fake_cuda.hpp"

extern "C" {
int cuInit(unsigned flags);
int cuDeviceGetCount(int* count);
int cuDeviceGetName(char* name, int length, int device);
int cuDevicePrimaryCtxRetain(void** context, int device);
int cuCtxSetCurrent(void* context);
int cuCtxSynchronize(void);
int cuStreamCreate(void** stream, unsigned flags);
int cuStreamDestroy_v2(void* stream);
int cuStreamSynchronize(void* stream);
int cuMemAlloc_v2(unsigned long long* address, std::size_t size_bytes);
int cuMemFree_v2(unsigned long long address);
int cuMemHostAlloc(void** data, std::size_t size_bytes, unsigned flags);
int cuMemFreeHost(void* data);
int cuMemcpyAsync(unsigned long long to, unsigned long long from, std::size_t size_bytes, void* stream);
int cuMemcpyHtoD_v2(unsigned long long to, const void* from, std::size_t size_bytes);
int cuMemcpyDtoH_v2(void* to, unsigned long long from, std::size_t size_bytes);
}

namespace {

thread_local cudaError_t last_error = cudaSuccess;

cudaError_t result_of(int driver) { return last_error = static_cast<cudaError_t>(driver); }

unsigned long long address_of(const void* data) { return reinterpret_cast<std::uintptr_t>(data); }

struct Step {
  const double* field;
  double* next;
  std::size_t rows;
  std::size_t columns;
};

double* contents(const double* address) {
  return reinterpret_cast<double*>(fake_cuda_contents(const_cast<double*>(address)));
}

void run_step(void* argument) {
  const std::unique_ptr<Step> step(static_cast<Step*>(argument));
  kedge::gpu::step_on_host(contents(step->field), contents(step->next), step->rows, step->columns);
}

}  // namespace

void heat_cuda::launch_step(const double* field, double* next, std::size_t rows, std::size_t columns,
                            cudaStream_t stream) {
  fake_cuda_launch(stream, run_step, std::make_unique<Step>(Step{field, next, rows, columns}).release());
}

extern "C" {

const char* cudaGetErrorName(cudaError_t error) { return error == cudaErrorMemoryAllocation ? "memory" : "an error"; }
const char* cudaGetErrorString(cudaError_t /*error*/) { return "a fake error"; }
cudaError_t cudaGetLastError() { return last_error; }
cudaError_t cudaDriverGetVersion(int* version) { return *version = CUDART_VERSION, cudaSuccess; }
cudaError_t cudaGetDeviceCount(int* count) {
  cuInit(0);
  return result_of(cuDeviceGetCount(count));
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  return result_of(cuDeviceGetName(properties->name, sizeof properties->name, device));
}
cudaError_t cudaSetDevice(int device) {
  void* context = nullptr;
  if (const cudaError_t result = result_of(cuDevicePrimaryCtxRetain(&context, device)); result != cudaSuccess) {
    return result;
  }
  return result_of(cuCtxSetCurrent(context));
}
cudaError_t cudaDeviceSynchronize() { return result_of(cuCtxSynchronize()); }
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  void* created = nullptr;
  const cudaError_t result = result_of(cuStreamCreate(&created, flags));
  *stream = static_cast<cudaStream_t>(created);
  return result;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) { return result_of(cuStreamDestroy_v2(stream)); }
cudaError_t cudaStreamSynchronize(cudaStream_t stream) { return result_of(cuStreamSynchronize(stream)); }
cudaError_t cudaMalloc(void** data, std::size_t size_bytes) {
  unsigned long long address = 0;
  const cudaError_t result = result_of(cuMemAlloc_v2(&address, size_bytes));
  *data = reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr)
  return result;
}
cudaError_t cudaFree(void* data) { return result_of(cuMemFree_v2(address_of(data))); }
cudaError_t cudaMallocHost(void** data, std::size_t size_bytes) {
  return result_of(cuMemHostAlloc(data, size_bytes, 1));
}
cudaError_t cudaFreeHost(void* data) { return result_of(cuMemFreeHost(data)); }
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t size_bytes, cudaMemcpyKind /*kind*/,
                            cudaStream_t stream) {
  return result_of(cuMemcpyAsync(address_of(to), address_of(from), size_bytes, stream));
}
cudaError_t cudaMemcpy(void* to, const void* from, std::size_t size_bytes, cudaMemcpyKind kind) {
  return result_of(kind == cudaMemcpyHostToDevice ? cuMemcpyHtoD_v2(address_of(to), from, size_bytes)
                                                  : cuMemcpyDtoH_v2(to, address_of(from), size_bytes));
}
}

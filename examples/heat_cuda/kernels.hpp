// What runs on the GPU. This header and kernels.cu are C++17, which every nvcc since CUDA 11 compiles.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

namespace heat_cuda {

/// Enqueues one time step on the stream. Both arrays are in GPU memory and have rows + 2 rows: the first and the last
/// of `field` are its neighbours', those of `next` are not written.
void launch_step(const double* field, double* next, std::size_t rows, std::size_t columns, cudaStream_t stream);

}  // namespace heat_cuda

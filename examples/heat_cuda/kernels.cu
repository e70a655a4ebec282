#include "cuda_check.hpp"
#include "heat.hpp"
#include "kernels.hpp"

namespace heat_cuda {
namespace {

constexpr unsigned kBlockColumns = 32;
constexpr unsigned kBlockRows = 8;

__global__ void step(const double* field, double* next, std::size_t rows, std::size_t columns) {
  const std::size_t column = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const std::size_t row = std::size_t{blockIdx.y} * blockDim.y + threadIdx.y;
  if (column >= columns || row >= rows) return;
  const std::size_t at = (row + 1) * columns + column;  // behind the row of the neighbour above
  next[at] = after_step(field + at, column, columns);
}

}  // namespace

void launch_step(const double* field, double* next, std::size_t rows, std::size_t columns, cudaStream_t stream) {
  const dim3 block(kBlockColumns, kBlockRows);
  const dim3 grid(static_cast<unsigned>((columns + kBlockColumns - 1) / kBlockColumns),
                  static_cast<unsigned>((rows + kBlockRows - 1) / kBlockRows));
  step<<<grid, block, 0, stream>>>(field, next, rows, columns);
  HEAT_CUDA_CHECK(cudaGetLastError());  // a launch returns nothing: its errors are asked for
}

}  // namespace heat_cuda

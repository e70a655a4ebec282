// The arithmetic. The kernel computes with it on the GPU; on the CPU a test compares it with heat2d's, bit for bit.
#pragma once

#include <cstddef>

#ifdef __CUDACC__
#define HEAT_CUDA_BOTH __host__ __device__
#else
#define HEAT_CUDA_BOTH
#endif

namespace heat_cuda {

constexpr double kDiffusion = 0.2;  // stable below 0.25

/// A cell after the next time step. `here` points to it in an array of rows of `columns` cells, which has a row above
/// the cell's and one below. The plate is insulated: at its left and right edge the cell's own value stands in.
HEAT_CUDA_BOTH inline double after_step(const double* here, std::size_t column, std::size_t columns) {
  const double own = *here;
  const double up = *(here - columns);
  const double down = *(here + columns);
  const double left = column == 0 ? own : *(here - 1);
  const double right = column + 1 == columns ? own : *(here + 1);
  return own + kDiffusion * (up + down + left + right - 4.0 * own);
}

/// The first temperature: a hot disc and a hot bar on a cold plate, heat2d's picture at any size.
inline double at_start(std::size_t row, std::size_t column, std::size_t rows, std::size_t columns) {
  const double x = static_cast<double>(column) * 512.0 / static_cast<double>(columns);
  const double y = static_cast<double>(row) * 384.0 / static_cast<double>(rows);
  const bool disc = (x - 160.0) * (x - 160.0) + (y - 140.0) * (y - 140.0) < 70.0 * 70.0;
  const bool bar = x > 300.0 && x < 470.0 && y > 260.0 && y < 290.0;
  return disc || bar ? 1.0 : 0.1;
}

}  // namespace heat_cuda

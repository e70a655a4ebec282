// A time step of examples/heat_cuda as its kernel makes it, cell by cell, on the processor.
#pragma once

#include <cstddef>

#include "heat_cuda/heat.hpp"

namespace kedge::gpu {

/// Arrays as launch_step has them.
inline void step_on_host(const double* field, double* next, std::size_t rows, std::size_t columns) {
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t column = 0; column < columns; ++column) {
      const std::size_t at = (row + 1) * columns + column;
      next[at] = heat_cuda::after_step(field + at, column, columns);
    }
  }
}

}  // namespace kedge::gpu

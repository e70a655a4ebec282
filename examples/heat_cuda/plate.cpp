#include "plate.hpp"

#include <stdexcept>
#include <utility>

#include "cuda_check.hpp"
#include "heat.hpp"
#include "kernels.hpp"

namespace heat_cuda {

Plate::DeviceArray Plate::device_array(std::size_t count) {
  void* data = nullptr;
  HEAT_CUDA_CHECK(cudaMalloc(&data, count * sizeof(double)));
  return DeviceArray(static_cast<double*>(data));
}

Plate::PinnedArray Plate::pinned_array(std::size_t count) {
  void* data = nullptr;
  HEAT_CUDA_CHECK(cudaMallocHost(&data, count * sizeof(double)));
  return PinnedArray(static_cast<double*>(data));
}

Plate::Plate(const Place& place, std::size_t rows, std::size_t columns) : place_(place), columns_(columns) {
  const auto ranks = static_cast<std::size_t>(place.ranks);
  const auto rank = static_cast<std::size_t>(place.rank);
  if (rows < ranks) throw std::runtime_error("the plate has fewer rows than there are ranks; use fewer ranks");
  first_row_ = rows * rank / ranks;
  rows_ = rows * (rank + 1) / ranks - first_row_;
  field_ = device_array((rows_ + 2) * columns);
  next_ = device_array((rows_ + 2) * columns);
  edges_ = pinned_array(4 * columns);
  // Non-blocking: does not synchronize with the default stream, which other libraries use.
  cudaStream_t stream = nullptr;
  HEAT_CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  stream_.reset(stream);

  std::vector<double> start(rows_ * columns);
  for (std::size_t row = 0; row < rows_; ++row) {
    for (std::size_t column = 0; column < columns; ++column) {
      start[row * columns + column] = at_start(first_row_ + row, column, rows, columns);
    }
  }
  HEAT_CUDA_CHECK(cudaMemcpy(data(), start.data(), start.size() * sizeof(double), cudaMemcpyHostToDevice));
  // The copy may have gone by the default stream, which ours does not wait for.
  HEAT_CUDA_CHECK(cudaDeviceSynchronize());
}

void Plate::copy_row(double* to, const double* from) const {
  HEAT_CUDA_CHECK(cudaMemcpyAsync(to, from, columns_ * sizeof(double), cudaMemcpyDefault, stream()));
}

/// By way of host memory, which works with every MPI. With one that is CUDA-aware (Open MPI: MPIX_Query_cuda_support())
/// give exchange_rows the addresses in GPU memory instead, after the same wait.
void Plate::update_outer_rows() {
  double* above = field_.get();
  double* first = above + columns_;
  double* last = above + rows_ * columns_;
  double* below = last + columns_;
  // At the rim of the plate there is no neighbour: the own edge stands in, so no heat flows out.
  if (place_.rank == 0) copy_row(above, first);
  if (place_.rank + 1 == place_.ranks) copy_row(below, last);
  if (place_.ranks == 1) return;
  double* host[4] = {edges_.get(), edges_.get() + columns_, edges_.get() + 2 * columns_, edges_.get() + 3 * columns_};
  copy_row(host[0], first);
  copy_row(host[1], last);
  HEAT_CUDA_CHECK(cudaStreamSynchronize(stream()));  // MPI knows nothing of the stream
  exchange_rows(place_, columns_, host[0], host[1], host[2], host[3]);
  if (place_.rank != 0) copy_row(above, host[2]);
  if (place_.rank + 1 != place_.ranks) copy_row(below, host[3]);
}

void Plate::advance() {
  update_outer_rows();
  launch_step(field_.get(), next_.get(), rows_, columns_, stream());
  std::swap(field_, next_);
}

std::vector<double> Plate::on_host() const {
  HEAT_CUDA_CHECK(cudaStreamSynchronize(stream()));
  std::vector<double> rows(rows_ * columns_);
  HEAT_CUDA_CHECK(cudaMemcpy(rows.data(), data(), rows.size() * sizeof(double), cudaMemcpyDeviceToHost));
  return rows;
}

}  // namespace heat_cuda

// The plate: rows of the temperature field in the memory of a GPU, a block of rows per rank.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>
#include <type_traits>
#include <vector>

#include "job.hpp"

namespace heat_cuda {

class Plate {
 public:
  /// COLLECTIVE. Splits `rows` x `columns` over all ranks, on each rank's current GPU.
  Plate(const Place& place, std::size_t rows, std::size_t columns);

  /// COLLECTIVE. Enqueues one explicit time step on the stream; the plate's rim is insulated.
  void advance();
  /// This rank's rows, in host memory.
  [[nodiscard]] std::vector<double> on_host() const;

  /// This rank's rows, in GPU memory: another address after each step.
  [[nodiscard]] double* data() const { return field_.get() + columns_; }
  /// The stream that computes. GPU memory is up to date when it has done all that it was given.
  [[nodiscard]] cudaStream_t stream() const { return stream_.get(); }
  [[nodiscard]] std::size_t rows() const { return rows_; }
  [[nodiscard]] std::size_t columns() const { return columns_; }
  [[nodiscard]] std::size_t first_row() const { return first_row_; }

 private:
  struct Free {
    void operator()(double* data) const { (void)cudaFree(data); }
  };
  struct FreeHost {
    void operator()(double* data) const { (void)cudaFreeHost(data); }
  };
  struct Destroy {
    void operator()(cudaStream_t stream) const { (void)cudaStreamDestroy(stream); }
  };
  using DeviceArray = std::unique_ptr<double[], Free>;
  using PinnedArray = std::unique_ptr<double[], FreeHost>;
  using Stream = std::unique_ptr<std::remove_pointer_t<cudaStream_t>, Destroy>;

  [[nodiscard]] static DeviceArray device_array(std::size_t count);
  [[nodiscard]] static PinnedArray pinned_array(std::size_t count);
  void copy_row(double* to, const double* from) const;
  void update_outer_rows();

  Place place_;
  std::size_t first_row_;  ///< of the whole plate
  std::size_t rows_;
  std::size_t columns_;
  DeviceArray field_;  ///< a row of the rank above, this rank's rows, a row of the rank below
  DeviceArray next_;
  PinnedArray edges_;  ///< four rows on their way to and from the neighbours
  Stream stream_;
};

}  // namespace heat_cuda

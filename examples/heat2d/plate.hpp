// The plate: one block of the temperature field per rank, halo exchange with the four neighbours.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <vector>

#include "picture.hpp"

namespace heat2d {

class Plate {
 public:
  /// COLLECTIVE. Splits the picture over a near-square grid of all ranks.
  Plate(MPI_Comm world, const Picture& picture);
  ~Plate();
  Plate(const Plate&) = delete;
  Plate& operator=(const Plate&) = delete;

  /// COLLECTIVE. One explicit time step; the plate's rim is insulated.
  void advance();
  /// COLLECTIVE. The whole field in global order on rank 0, empty elsewhere.
  [[nodiscard]] std::vector<double> gather() const;

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] double* data() { return field_.data(); }
  [[nodiscard]] std::uint64_t rows() const { return rows_.count; }
  [[nodiscard]] std::uint64_t columns() const { return columns_.count; }
  [[nodiscard]] std::uint64_t first_row() const { return rows_.first; }
  [[nodiscard]] std::uint64_t first_column() const { return columns_.first; }

 private:
  struct Range {
    std::uint64_t first = 0;
    std::uint64_t count = 0;
  };
  static Range share(std::uint64_t total, int parts, int part);
  void exchange_halos();

  MPI_Comm grid_ = MPI_COMM_NULL;
  int rank_ = 0;
  std::uint64_t width_ = 0;
  std::uint64_t height_ = 0;
  Range rows_;
  Range columns_;
  std::vector<double> field_;  ///< this rank's block, row by row: what is saved
  std::vector<double> next_;
  std::vector<double> north_, south_, west_, east_;  ///< the neighbours' edges
};

}  // namespace heat2d

#include "plate.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>

namespace heat2d {
namespace {

constexpr double kDiffusion = 0.2;  // stable below 0.25

}  // namespace

Plate::Range Plate::share(std::uint64_t total, int parts, int part) {
  const auto n = static_cast<std::uint64_t>(parts);
  const auto i = static_cast<std::uint64_t>(part);
  const std::uint64_t first = total * i / n;
  return {first, total * (i + 1) / n - first};
}

Plate::Plate(MPI_Comm world, const Picture& picture) : width_(picture.width), height_(picture.height) {
  int ranks = 0;
  MPI_Comm_size(world, &ranks);
  std::array<int, 2> dims = {0, 0};
  MPI_Dims_create(ranks, 2, dims.data());
  if (static_cast<std::uint64_t>(dims[0]) > height_ || static_cast<std::uint64_t>(dims[1]) > width_) {
    throw std::runtime_error("the picture has fewer rows or columns than the grid of ranks; use fewer ranks");
  }
  const std::array<int, 2> open_ends = {0, 0};
  MPI_Cart_create(world, 2, dims.data(), open_ends.data(), 0, &grid_);
  MPI_Comm_rank(grid_, &rank_);
  std::array<int, 2> place{};
  MPI_Cart_coords(grid_, rank_, 2, place.data());
  rows_ = share(height_, dims[0], place[0]);
  columns_ = share(width_, dims[1], place[1]);
  field_.resize(rows_.count * columns_.count);
  next_.resize(field_.size());
  for (std::uint64_t row = 0; row < rows_.count; ++row) {
    for (std::uint64_t column = 0; column < columns_.count; ++column) {
      field_[row * columns_.count + column] = picture.pixels[(rows_.first + row) * width_ + columns_.first + column];
    }
  }
}

Plate::~Plate() { MPI_Comm_free(&grid_); }

void Plate::exchange_halos() {
  const std::uint64_t nx = columns_.count;
  const std::uint64_t ny = rows_.count;
  std::vector<double> left(ny);
  std::vector<double> right(ny);
  for (std::uint64_t row = 0; row < ny; ++row) {
    left[row] = field_[row * nx];
    right[row] = field_[row * nx + nx - 1];
  }
  // At the rim there is no neighbour: the own edge stands in, so no heat flows out.
  north_.assign(field_.begin(), field_.begin() + static_cast<std::ptrdiff_t>(nx));
  south_.assign(field_.end() - static_cast<std::ptrdiff_t>(nx), field_.end());
  west_ = left;
  east_ = right;
  const std::vector<double> top = north_;
  const std::vector<double> bottom = south_;

  int up = 0, down = 0, before = 0, after = 0;
  MPI_Cart_shift(grid_, 0, 1, &up, &down);
  MPI_Cart_shift(grid_, 1, 1, &before, &after);
  const auto swap = [this](const std::vector<double>& out, int to, std::vector<double>& in, int from) {
    MPI_Sendrecv(out.data(), static_cast<int>(out.size()), MPI_DOUBLE, to, 0, in.data(), static_cast<int>(in.size()),
                 MPI_DOUBLE, from, 0, grid_, MPI_STATUS_IGNORE);
  };
  swap(top, up, south_, down);
  swap(bottom, down, north_, up);
  swap(left, before, east_, after);
  swap(right, after, west_, before);
}

void Plate::advance() {
  exchange_halos();
  const std::uint64_t nx = columns_.count;
  const std::uint64_t ny = rows_.count;
  for (std::uint64_t row = 0; row < ny; ++row) {
    for (std::uint64_t column = 0; column < nx; ++column) {
      const std::uint64_t here = row * nx + column;
      const double up = row == 0 ? north_[column] : field_[here - nx];
      const double down = row + 1 == ny ? south_[column] : field_[here + nx];
      const double left = column == 0 ? west_[row] : field_[here - 1];
      const double right = column + 1 == nx ? east_[row] : field_[here + 1];
      next_[here] = field_[here] + kDiffusion * (up + down + left + right - 4.0 * field_[here]);
    }
  }
  // Copied, not swapped: the State points to field_.
  std::copy(next_.begin(), next_.end(), field_.begin());
}

std::vector<double> Plate::gather() const {
  const std::array<std::uint64_t, 4> mine = {rows_.first, rows_.count, columns_.first, columns_.count};
  if (rank_ != 0) {
    MPI_Send(mine.data(), 4, MPI_UINT64_T, 0, 1, grid_);
    MPI_Send(field_.data(), static_cast<int>(field_.size()), MPI_DOUBLE, 0, 2, grid_);
    return {};
  }
  int ranks = 0;
  MPI_Comm_size(grid_, &ranks);
  std::vector<double> whole(width_ * height_);
  for (int from = 0; from < ranks; ++from) {
    std::array<std::uint64_t, 4> theirs = mine;
    std::vector<double> block = field_;
    if (from != 0) {
      MPI_Recv(theirs.data(), 4, MPI_UINT64_T, from, 1, grid_, MPI_STATUS_IGNORE);
      block.resize(theirs[1] * theirs[3]);
      MPI_Recv(block.data(), static_cast<int>(block.size()), MPI_DOUBLE, from, 2, grid_, MPI_STATUS_IGNORE);
    }
    for (std::uint64_t row = 0; row < theirs[1]; ++row) {
      std::copy_n(&block[row * theirs[3]], theirs[3], &whole[(theirs[0] + row) * width_ + theirs[2]]);
    }
  }
  return whole;
}

}  // namespace heat2d

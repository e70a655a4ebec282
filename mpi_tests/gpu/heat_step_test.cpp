// The arithmetic of examples/heat_cuda against that of examples/heat2d, bit for bit.
#include <gtest/gtest.h>

#include <mpi.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "gpu/heat_on_host.hpp"
#include "heat2d/picture.hpp"
#include "heat2d/plate.hpp"

namespace kedge::gpu::heat_step_test {
namespace {

/// The whole plate with a row above and below, as a GPU alone has it.
class OnePlate {
 public:
  explicit OnePlate(const heat2d::Picture& picture)
      : rows_(picture.height), columns_(picture.width), field_((rows_ + 2) * columns_), next_(field_.size()) {
    std::ranges::copy(picture.pixels, field_.begin() + static_cast<std::ptrdiff_t>(columns_));
  }
  void advance() {
    std::copy_n(&field_[columns_], columns_, &field_[0]);
    std::copy_n(&field_[rows_ * columns_], columns_, &field_[(rows_ + 1) * columns_]);
    step_on_host(field_.data(), next_.data(), rows_, columns_);
    std::swap(field_, next_);
  }
  [[nodiscard]] std::vector<double> rows() const {
    return {field_.begin() + static_cast<std::ptrdiff_t>(columns_),
            field_.end() - static_cast<std::ptrdiff_t>(columns_)};
  }

 private:
  std::size_t rows_;
  std::size_t columns_;
  std::vector<double> field_;
  std::vector<double> next_;
};

heat2d::Picture noise(std::uint64_t width, std::uint64_t height) {
  heat2d::Picture picture{width, height, {}};
  std::uint32_t seed = 7;
  for (std::uint64_t i = 0; i < width * height; ++i) {
    seed = seed * 1664525U + 1013904223U;
    picture.pixels.push_back(static_cast<double>(seed >> 8U) / 16777216.0);
  }
  return picture;
}

void expect_same_steps(const heat2d::Picture& picture) {
  heat2d::Plate theirs(MPI_COMM_WORLD, picture);
  OnePlate ours(picture);
  for (int step = 1; step <= 20; ++step) {
    theirs.advance();
    ours.advance();
    const std::vector<double> whole = theirs.gather();
    if (theirs.rank() != 0) continue;
    ASSERT_EQ(heat2d::checksum(ours.rows()), heat2d::checksum(whole)) << "after step " << step;
  }
}

TEST(HeatCuda, AStepIsThatOfHeat2d) {
  expect_same_steps(noise(37, 23));
  expect_same_steps(noise(8, 64));
  expect_same_steps(heat2d::load_picture(""));
}

TEST(HeatCuda, ItsPlateBeginsAsHeat2dsBuiltInPicture) {
  const heat2d::Picture picture = heat2d::load_picture("");
  std::vector<double> start;
  for (std::uint64_t row = 0; row < picture.height; ++row) {
    for (std::uint64_t column = 0; column < picture.width; ++column) {
      start.push_back(heat_cuda::at_start(row, column, picture.height, picture.width));
    }
  }
  EXPECT_EQ(start, picture.pixels);
}

}  // namespace
}  // namespace kedge::gpu::heat_step_test

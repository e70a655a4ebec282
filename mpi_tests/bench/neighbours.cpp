#include "neighbours.hpp"

#include <mpi.h>

#include <algorithm>
#include <cmath>

#include "timing.hpp"

namespace kedge_bench {
namespace {

constexpr std::size_t kDoubles = std::size_t{2} << 20U;  // 16 MiB for each array
constexpr std::size_t kPerRank = std::size_t{64} << 10U;
constexpr double kFactor = 1e-9;

int rounds_for(double seconds, double one_s) {
  return static_cast<int>(std::clamp(std::ceil(seconds / std::max(one_s, 1e-6)), 1.0, 100'000.0));
}

}  // namespace

void Neighbours::allocate() {
  if (!a_.empty()) return;
  int ranks = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  a_.assign(kDoubles, 0.0);
  b_.assign(kDoubles, 1.0);
  c_.assign(kDoubles, 2.0);
  sent_.resize(kPerRank * static_cast<std::size_t>(ranks));
  received_.resize(sent_.size());
}

void Neighbours::calibrate(double seconds) {
  allocate();
  computed_ = exchanged_ = 4;
  (void)compute();  // pages are entered
  computed_ = rounds_for(seconds, compute() / computed_);
  exchanged_ = rounds_for(seconds, exchange() / exchanged_);
}

double Neighbours::compute() {
  return timed([&] {
    for (int round = 0; round < computed_; ++round) {
      for (std::size_t i = 0; i < kDoubles; ++i) a_[i] = b_[i] + kFactor * c_[i];
      std::swap(a_, c_);  // what was computed is used
    }
  });
}

double Neighbours::exchange() {
  constexpr int kBytes = static_cast<int>(kPerRank);
  return timed([&] {
    for (int round = 0; round < exchanged_; ++round) {
      MPI_Alltoall(sent_.data(), kBytes, MPI_BYTE, received_.data(), kBytes, MPI_BYTE, MPI_COMM_WORLD);
    }
  });
}

}  // namespace kedge_bench

// What an application does while Kedge works behind it: loops that need memory, and loops that need messages. Nothing
// of Kedge is used here.
#pragma once

#include <cstddef>
#include <vector>

namespace kedge_bench {

class Neighbours {
 public:
  /// COLLECTIVE. Chooses how often each loop goes round, so that it takes about so long.
  void calibrate(double seconds);
  /// COLLECTIVE. Seconds of a loop over arrays that no cache holds (a = b + s * c).
  [[nodiscard]] double compute();
  /// COLLECTIVE. Seconds of a loop of MPI_Alltoall, 64 KiB for each other rank.
  [[nodiscard]] double exchange();

 private:
  void allocate();

  std::vector<double> a_;
  std::vector<double> b_;
  std::vector<double> c_;
  std::vector<std::byte> sent_;
  std::vector<std::byte> received_;
  int computed_ = 1;   ///< rounds
  int exchanged_ = 1;  ///< likewise
};

}  // namespace kedge_bench

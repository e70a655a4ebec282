// A program whose state goes on with any number of ranks: an array in blocks of rows, a list of particles, numbers that
// are equal on all ranks, and bytes of each rank's own.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "kedge/state.hpp"

namespace kedge::faults {

/// One rank's part of it.
class ElasticProgram {
 public:
  static constexpr std::uint64_t kColumns = 3;

  ElasticProgram(int rank, int ranks, std::uint64_t row_count = 29);
  ElasticProgram(const ElasticProgram&) = delete;
  ElasticProgram& operator=(const ElasticProgram&) = delete;

  /// The state after this step.
  void set(int step);
  [[nodiscard]] State& state() noexcept { return state_; }
  [[nodiscard]] int step() const noexcept { return step_; }

  /// Local: fails the test if an element is not that of this step. What it has of other ranks' own bytes and particles
  /// is added to `found`.
  struct Found {
    std::mutex mutex;
    std::multiset<std::uint64_t> particles;
    std::map<std::uint32_t, std::string> own;  ///< by the rank that saved it
  };
  void expect(int step, int saved_by, Found& found) const;
  /// Once for all ranks: every particle and every rank's own bytes are there once.
  static void expect_whole(const Found& found, int step, int saved_by);

 private:
  [[nodiscard]] std::uint64_t first_row(int rank) const;
  [[nodiscard]] Shard rows() const;

  int rank_;
  int ranks_;
  std::uint64_t rows_;
  std::vector<double> field_;
  std::vector<std::uint64_t> particles_;
  int step_ = 0;
  std::string own_;
  std::map<std::uint32_t, std::string> own_of_others_;
  State state_;
};

}  // namespace kedge::faults

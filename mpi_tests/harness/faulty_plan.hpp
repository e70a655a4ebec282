// Who dies or fails in which operation. No locking.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <random>

namespace kedge::faults {

/// What becomes of one operation.
struct Verdict {
  enum class Kind : std::uint8_t { go, fail, die, dead };
  Kind kind = Kind::go;
  int error = 0;             // of fail
  std::uint64_t random = 0;  // of die: how far the operation got

  [[nodiscard]] bool dies() const noexcept { return kind == Kind::die; }
};

class FaultPlan {
 public:
  void stop_after(int rank, std::uint64_t n, std::uint64_t seed);
  void stop_all(std::uint64_t seed);
  void kill(int rank) { ranks_[rank].dead = true; }
  void fail(int rank, std::uint64_t n, int system_errno) { ranks_[rank].failures[n] = system_errno; }
  void fail_read(int rank, std::uint64_t n, int system_errno) { ranks_[rank].read_failures[n] = system_errno; }
  void heal(int rank);
  void fail_sometimes(int rank, std::uint64_t one_in, int system_errno, std::uint64_t seed);

  /// Counts one operation; after `die` the rank is dead.
  [[nodiscard]] Verdict mutate(int rank);
  [[nodiscard]] Verdict read(int rank);

  [[nodiscard]] std::uint64_t operations(int rank) const;
  [[nodiscard]] std::uint64_t reads(int rank) const;
  [[nodiscard]] bool dead(int rank) const;

 private:
  struct Rank {
    std::uint64_t operations = 0;
    std::uint64_t reads = 0;
    bool dead = false;
    std::optional<std::uint64_t> stop_at;
    std::uint64_t stop_seed = 0;
    std::map<std::uint64_t, int> failures;
    std::map<std::uint64_t, int> read_failures;
    std::uint64_t one_in = 0;
    int sometimes_errno = 0;
    std::mt19937_64 random;
  };
  [[nodiscard]] Verdict die(Rank& rank, int number, std::uint64_t seed) const;
  static int due(std::map<std::uint64_t, int>& failures, std::uint64_t n);

  std::map<int, Rank> ranks_;
  std::optional<std::uint64_t> stop_all_seed_;
};

}  // namespace kedge::faults

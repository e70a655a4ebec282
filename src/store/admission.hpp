// Reserves space among the processes of a node, which would otherwise all count on the same free bytes.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "fs/file_system.hpp"
#include "kedge/error.hpp"
#include "kedge/types.hpp"

namespace kedge::store {

/// A process first writes the number of bytes that it is about to take into a reservation file in the store, and then
/// checks the free space: of any two processes, at least one sees the other's reservation. The kernel locks the file
/// while its process lives, so crashed processes hold none. Thread-safe. All calls are local and wait for no rank.
class Admission {
 public:
  /// Longest wait for other processes to take their reserved space.
  static constexpr std::chrono::seconds kWaitMax{10};

  Admission(std::shared_ptr<fs::FileSystem> file_system, std::string directory, LogicalRank own_rank,
            std::chrono::seconds max_wait = kWaitMax)
      : file_system_(std::move(file_system)),
        directory_(std::move(directory)),
        own_rank_(own_rank),
        wait_max_(max_wait) {}

  /// Admitted bytes, which others count as taken until this is destroyed; by then the free space must show them. Null
  /// if the process is alone.
  using Admitted = std::unique_ptr<fs::Lock>;

  /// Returns why so many bytes do not fit, or nothing. May throw Error.
  using CheckFits = std::function<std::optional<Failure>(std::uint64_t bytes)>;

  /// Says that several processes use the store; until then, this one counts as alone on its node.
  void set_shared() noexcept { shared_ = true; }

  /// Returns when `bytes` fit beside all reservations of other processes; waits a few seconds at most. Throws the
  /// failure that `fits` returns.
  [[nodiscard]] Admitted admit(std::uint64_t bytes, const CheckFits& fits) const;

  /// Removes the reservation files of this rank, also of crashed starts. None may be in use.
  void remove_reservations() const;

 private:
  /// A reservation's lock and file name.
  struct Reservation {
    Admitted lock;
    std::string name;
  };

  [[nodiscard]] Reservation write_reservation(std::uint64_t bytes) const;
  [[nodiscard]] std::uint64_t reserved_by_others(const Reservation& own) const;
  [[nodiscard]] Admitted wait_for_turn(std::uint64_t bytes, const CheckFits& fits) const;
  [[nodiscard]] std::string own_prefix() const;

  std::shared_ptr<fs::FileSystem> file_system_;
  std::string directory_;
  LogicalRank own_rank_;
  std::chrono::seconds wait_max_;
  bool shared_ = false;
};

}  // namespace kedge::store

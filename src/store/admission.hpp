// Look and take in one step: what a process is about to take of its node's storage is known to the others meanwhile.
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

/// Processes that share a store say in a note beside its files how much they are about to take, and only then look how
/// much is free: of any two, one at least sees the other's note. Each note is locked by the kernel for as long as its
/// process lives, so a death leaves none that counts. Thread-safe. All calls are local and wait for no rank.
class Admission {
 public:
  /// How long what others are about to take is waited for.
  static constexpr std::chrono::seconds kPatience{10};

  Admission(std::shared_ptr<fs::FileSystem> file_system, std::string directory, LogicalRank mine,
            std::chrono::seconds patience = kPatience)
      : file_system_(std::move(file_system)), directory_(std::move(directory)), mine_(mine), patience_(patience) {}

  /// Admitted bytes, which count as taken by the others until this is destroyed: by then they must show in what is
  /// free. Null where the process is alone.
  using Admitted = std::unique_ptr<fs::Lock>;

  /// Whether so many bytes fit: nothing, or why not. It may throw Error.
  using Fits = std::function<std::optional<Failure>(std::uint64_t bytes)>;

  /// Without this call the process is taken to be alone on its node.
  void share() noexcept { shared_ = true; }

  /// Returns when `bytes` fit beside all that others are about to take, after some seconds at most. Throws what `fits`
  /// says if they do not.
  [[nodiscard]] Admitted admit(std::uint64_t bytes, const Fits& fits) const;

  /// Removes the files of this rank's notes, also those of a crashed start. None may be held.
  void sweep() const;

 private:
  /// A note that was written, and its name.
  struct Reservation {
    Admitted note;
    std::string name;
  };

  [[nodiscard]] Reservation write_reservation(std::uint64_t bytes) const;
  [[nodiscard]] std::uint64_t others_bytes(const Reservation& mine) const;
  [[nodiscard]] Admitted wait_for_turn(std::uint64_t bytes, const Fits& fits) const;
  [[nodiscard]] std::string own_prefix() const;

  std::shared_ptr<fs::FileSystem> file_system_;
  std::string directory_;
  LogicalRank mine_;
  std::chrono::seconds patience_;
  bool shared_ = false;
};

}  // namespace kedge::store

// Large writes past the page cache: aligned pieces through bounce buffers, several in progress at once.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fs/io_queue.hpp"

namespace kedge::fs {

/// Queues and bounce buffers for all files of a process, allocated on first use: at most kUnitsMax x kDepth x
/// kPieceBytes = 8 MiB. Thread-safe; a third thread waits for a unit.
class DirectWriter {
 public:
  static constexpr std::uint64_t kAlignmentBytes = 4096;
  static constexpr std::size_t kPieceBytes = std::size_t{512} << 10U;
  static constexpr unsigned kDepth = 8;
  static constexpr std::size_t kUnitsMax = 2;

  /// Writes the rest of a piece the ordinary way, with its errors.
  using WriteRest = std::function<void(std::uint64_t offset, std::span<const std::byte> bytes)>;

  /// The file to write to.
  struct Target {
    int descriptor = -1;  ///< opened with O_DIRECT
    const std::string& path;
    const WriteRest& write_rest;
  };

  explicit DirectWriter(MakeQueue make_queue = make_uring_queue);
  DirectWriter(const DirectWriter&) = delete;
  DirectWriter& operator=(const DirectWriter&) = delete;
  ~DirectWriter();

  /// Writes `bytes` to `offset`, both multiples of kAlignmentBytes, and continues `crc`. When it returns or throws
  /// Error{io | no_space}, no write is in progress. Returns nothing, having written nothing, if the system grants no
  /// queue.
  [[nodiscard]] std::optional<std::uint32_t> write(const Target& target, std::uint64_t offset,
                                                   std::span<const std::byte> bytes, std::uint32_t crc);
  /// The errno with which the system refused a queue; 0 if it granted one, or none was needed yet.
  [[nodiscard]] int refusal_errno() const;

 private:
  class Unit;
  class Lease;
  class WritesInProgress;

  [[nodiscard]] std::unique_ptr<Unit> take_unit();
  void return_unit(std::unique_ptr<Unit> unit) noexcept;

  MakeQueue make_queue_;
  mutable std::mutex mutex_;
  std::condition_variable unit_returned_;
  std::vector<std::unique_ptr<Unit>> idle_units_;
  std::size_t unit_count_ = 0;  // idle or taken
  int refusal_errno_ = 0;
};

}  // namespace kedge::fs

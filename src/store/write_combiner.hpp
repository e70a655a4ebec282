// Combines the many small pieces of packed regions, because block storage prefers few large writes.
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include "fs/file_system.hpp"

namespace kedge::store {

/// Passes large pieces on and combines small adjacent ones into one write. Thread-safe.
class WriteCombiner final : public fs::ByteAccess {
 public:
  static constexpr std::size_t kBufferBytes = std::size_t{4} << 20U;

  explicit WriteCombiner(fs::File& file) : file_(file) {}

  std::uint32_t write_with_crc(std::uint64_t offset, std::span<const std::byte> bytes, std::uint32_t crc) override;
  void write(std::uint64_t offset, std::span<const std::byte> bytes) override;
  std::uint32_t read_with_crc(std::uint64_t offset, std::span<std::byte> bytes, std::uint32_t crc) override;
  void read(std::uint64_t offset, std::span<std::byte> bytes) override;
  std::uint32_t checksum(std::uint64_t offset, std::uint64_t length, std::uint32_t crc) override;
  /// Writes the gathered pieces.
  void flush();

 private:
  bool gather_piece(std::uint64_t offset, std::span<const std::byte> bytes);
  void flush_locked();

  fs::File& file_;
  std::mutex mutex_;
  std::vector<std::byte> gathered_;
  std::uint64_t gathered_offset_ = 0;
};

}  // namespace kedge::store

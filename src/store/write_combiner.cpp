#include "store/write_combiner.hpp"

#include <utility>

#include "checksum/crc32c.hpp"

namespace kedge::store {

std::uint32_t WriteCombiner::write_with_crc(std::uint64_t offset, std::span<const std::byte> bytes, std::uint32_t crc) {
  return gather_piece(offset, bytes) ? crc32c(bytes, crc) : file_.write_with_crc(offset, bytes, crc);
}

void WriteCombiner::write(std::uint64_t offset, std::span<const std::byte> bytes) {
  if (!gather_piece(offset, bytes)) file_.write(offset, bytes);
}

/// False if the piece is large enough to be written alone; gathered pieces before it must then be written.
bool WriteCombiner::gather_piece(std::uint64_t offset, std::span<const std::byte> bytes) {
  if (bytes.size() >= kBufferBytes / 4) {
    flush();
    return false;
  }
  const std::lock_guard guard(mutex_);
  const bool adjacent = offset == gathered_offset_ + gathered_.size();
  if (!adjacent || gathered_.size() + bytes.size() > kBufferBytes) flush_locked();
  if (gathered_.empty()) {
    gathered_.reserve(kBufferBytes);
    gathered_offset_ = offset;
  }
  gathered_.insert(gathered_.end(), bytes.begin(), bytes.end());
  return true;
}

std::uint32_t WriteCombiner::read_with_crc(std::uint64_t offset, std::span<std::byte> bytes, std::uint32_t crc) {
  flush();
  return file_.read_with_crc(offset, bytes, crc);
}

void WriteCombiner::read(std::uint64_t offset, std::span<std::byte> bytes) {
  flush();
  file_.read(offset, bytes);
}

std::uint32_t WriteCombiner::checksum(std::uint64_t offset, std::uint64_t length, std::uint32_t crc) {
  flush();
  return file_.checksum(offset, length, crc);
}

void WriteCombiner::flush() {
  const std::lock_guard guard(mutex_);
  flush_locked();
}

void WriteCombiner::flush_locked() {
  if (gathered_.empty()) return;
  // Cleared even if the write throws: the commit then fails, and the bytes must not end up in the next one.
  const std::vector<std::byte> pending = std::exchange(gathered_, {});
  file_.write(gathered_offset_, pending);
}

}  // namespace kedge::store

// Where the bytes of a box lie in two arrays, in a stored block and in memory: a nested loop over runs that are
// contiguous in both, described by two offsets, the length of a run, and for each level of the loop a count and two
// strides. It takes less than 250 bytes whatever the box, where a list of runs may take as many as the box itself.
// Pure.
//
// Bytes of a box are numbered in the order in which they are stored, without what lies between: the *packed* bytes.
// Part of a box is a range of packed bytes, which means the same to a process that knows only the one array and to
// one that knows only the other.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include "arrays/box.hpp"

namespace kedge::arrays {

/// A box within a larger array that lies in row-major order.
struct BoxInArray {
  Shape extents;  ///< of the array
  Point at{};     ///< where the box begins in it
};

/// Packed bytes from `first` up to, and without, `last`.
struct PackedRange {
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  [[nodiscard]] std::uint64_t size_bytes() const noexcept { return last - first; }
  bool operator==(const PackedRange&) const = default;
};

class Pattern {
 public:
  /// A box of this shape. Offsets of its bytes in both arrays must fit in 64 bits.
  Pattern(const Shape& shape, std::uint64_t element_bytes, const BoxInArray& stored, const BoxInArray& memory);

  /// Bytes of the whole box.
  [[nodiscard]] std::uint64_t size_bytes() const noexcept { return size_bytes_; }
  /// Contiguous bytes in both arrays.
  [[nodiscard]] std::uint64_t run_bytes() const noexcept { return run_bytes_; }
  [[nodiscard]] std::size_t levels() const noexcept { return levels_; }

  /// Where the first byte is stored, and where the last one ends; only if there are any.
  [[nodiscard]] std::uint64_t first_stored() const noexcept { return stored_offset_; }
  [[nodiscard]] std::uint64_t end_stored() const noexcept {
    std::uint64_t end = stored_offset_ + run_bytes_;
    for (std::size_t level = 0; level < levels_; ++level)
      end += (loops_[level].count - 1) * loops_[level].stored_stride;
    return end;
  }

  /// How many of the bytes are stored below this offset. Takes no longer for a larger box.
  [[nodiscard]] std::uint64_t count_below(std::uint64_t stored_offset) const noexcept;
  /// The bytes that are stored in [begin, end).
  [[nodiscard]] PackedRange stored_in(std::uint64_t begin, std::uint64_t end) const noexcept {
    return {count_below(begin), count_below(end)};
  }

  /// Where the range is in memory, if it is one run there and where it is stored.
  [[nodiscard]] std::optional<std::uint64_t> memory_of_run(const PackedRange& range) const noexcept {
    const Position at = position_of(range.first);
    if (range.size_bytes() > run_bytes_ - at.in_run) return std::nullopt;
    return at.memory + at.in_run;
  }

  /// visit(stored offset, memory offset, length) for each run of the range, cut where the range begins and ends.
  template <class Visit>
  void for_each_run(const PackedRange& range, Visit&& visit) const {
    if (range.first >= range.last) return;
    Position at = position_of(range.first);
    for (std::uint64_t left = range.size_bytes(); left > 0;) {
      const std::uint64_t length = std::min(run_bytes_ - at.in_run, left);
      visit(at.stored + at.in_run, at.memory + at.in_run, length);
      left -= length;
      at.in_run = 0;
      if (left > 0) advance(at);
    }
  }

 private:
  struct Loop {
    std::uint64_t count = 0;
    std::uint64_t stored_stride = 0;
    std::uint64_t memory_stride = 0;
    std::uint64_t packed_stride = 0;
  };
  struct Position {
    std::array<std::uint64_t, Shape::kMaxDimensions> index{};
    std::uint64_t stored = 0;  ///< where the run begins
    std::uint64_t memory = 0;
    std::uint64_t in_run = 0;
  };
  [[nodiscard]] Position position_of(std::uint64_t packed) const noexcept;
  /// To the next run. Innermost loops come first.
  void advance(Position& at) const noexcept {
    for (std::size_t level = 0; level < levels_; ++level) {
      const Loop& loop = loops_[level];
      at.stored += loop.stored_stride;
      at.memory += loop.memory_stride;
      if (++at.index[level] < loop.count) return;
      at.index[level] = 0;
      at.stored -= loop.count * loop.stored_stride;
      at.memory -= loop.count * loop.memory_stride;
    }
  }

  std::uint64_t stored_offset_ = 0;
  std::uint64_t memory_offset_ = 0;
  std::uint64_t run_bytes_ = 0;
  std::uint64_t size_bytes_ = 0;
  std::size_t levels_ = 0;
  std::array<Loop, Shape::kMaxDimensions> loops_{};  ///< innermost first
};

/// Copies the range out of the stored block, of which `piece` holds the bytes from `piece_offset` on, to `packed`.
void gather(const Pattern& pattern, const PackedRange& range, std::span<const std::byte> piece,
            std::uint64_t piece_offset, std::span<std::byte> packed);
/// Copies the range from `packed` into the array in memory.
void scatter(const Pattern& pattern, const PackedRange& range, std::span<const std::byte> packed, std::byte* memory);
/// Copies the range out of the stored block, as gather does, straight into the array in memory.
void copy(const Pattern& pattern, const PackedRange& range, std::span<const std::byte> piece,
          std::uint64_t piece_offset, std::byte* memory);

}  // namespace kedge::arrays

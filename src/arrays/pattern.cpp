#include "arrays/pattern.hpp"

#include "base/invariant.hpp"

namespace kedge::arrays {
namespace {

/// A call of memcpy costs more than the few bytes of an element.
inline void copy_run(std::byte* to, const std::byte* from, std::uint64_t length) noexcept {
  switch (length) {
    case 4: std::memcpy(to, from, 4); return;
    case 8: std::memcpy(to, from, 8); return;
    case 16: std::memcpy(to, from, 16); return;
    default: std::memcpy(to, from, length);
  }
}

/// Where the bytes of the stored block lie that begin at `offset`, as many as `length`.
const std::byte* bytes_at(std::span<const std::byte> piece, std::uint64_t piece_offset, std::uint64_t offset,
                          std::uint64_t length) {
  invariant(offset >= piece_offset && offset - piece_offset <= piece.size() &&
                length <= piece.size() - (offset - piece_offset),
            "a range of a box lies in the piece that was read for it");
  return piece.data() + (offset - piece_offset);
}

}  // namespace

Pattern::Pattern(const Shape& shape, std::uint64_t element_bytes, const BoxInArray& stored, const BoxInArray& memory)
    : run_bytes_(element_bytes) {
  std::uint64_t stored_stride = element_bytes;
  std::uint64_t memory_stride = element_bytes;
  bool is_empty = false;
  for (std::size_t d = shape.dimensions(); d-- > 0;) {
    const std::uint64_t count = shape[d];
    is_empty = is_empty || count == 0;
    Loop* const inner = levels_ == 0 ? nullptr : &loops_[levels_ - 1];
    if (count > 1 && inner == nullptr && stored_stride == run_bytes_ && memory_stride == run_bytes_) {
      run_bytes_ *= count;
    } else if (count > 1 && inner != nullptr && stored_stride == inner->count * inner->stored_stride &&
               memory_stride == inner->count * inner->memory_stride) {
      inner->count *= count;
    } else if (count > 1) {
      loops_[levels_++] = {count, stored_stride, memory_stride, 0};
    }
    stored_offset_ += stored.at[d] * stored_stride;
    memory_offset_ += memory.at[d] * memory_stride;
    stored_stride *= stored.extents[d];
    memory_stride *= memory.extents[d];
  }
  size_bytes_ = run_bytes_;
  for (std::size_t level = 0; level < levels_; ++level) {
    loops_[level].packed_stride = size_bytes_;
    size_bytes_ *= loops_[level].count;
  }
  if (is_empty) size_bytes_ = 0;
}

std::uint64_t Pattern::count_below(std::uint64_t stored_offset) const noexcept {
  if (size_bytes_ == 0 || stored_offset <= stored_offset_) return 0;
  std::uint64_t left = stored_offset - stored_offset_;
  std::uint64_t count = 0;
  for (std::size_t level = levels_; level-- > 0;) {
    const Loop& loop = loops_[level];
    const std::uint64_t whole = left / loop.stored_stride;
    if (whole >= loop.count) return count + loop.count * loop.packed_stride;
    count += whole * loop.packed_stride;
    left -= whole * loop.stored_stride;
  }
  return count + std::min(left, run_bytes_);
}

Pattern::Position Pattern::position_of(std::uint64_t packed) const noexcept {
  Position at;
  at.stored = stored_offset_;
  at.memory = memory_offset_;
  for (std::size_t level = levels_; level-- > 0;) {
    const Loop& loop = loops_[level];
    at.index[level] = packed / loop.packed_stride;
    at.stored += at.index[level] * loop.stored_stride;
    at.memory += at.index[level] * loop.memory_stride;
    packed %= loop.packed_stride;
  }
  at.in_run = packed;
  return at;
}

void gather(const Pattern& pattern, const PackedRange& range, std::span<const std::byte> piece,
            std::uint64_t piece_offset, std::span<std::byte> packed) {
  invariant(packed.size() == range.size_bytes(), "there is room for as many bytes as are gathered");
  std::byte* to = packed.data();
  pattern.for_each_run(range, [&](std::uint64_t stored, std::uint64_t, std::uint64_t length) {
    copy_run(to, bytes_at(piece, piece_offset, stored, length), length);
    to += length;
  });
}

void scatter(const Pattern& pattern, const PackedRange& range, std::span<const std::byte> packed, std::byte* memory) {
  invariant(packed.size() == range.size_bytes(), "there are as many bytes as the range has");
  const std::byte* from = packed.data();
  pattern.for_each_run(range, [&](std::uint64_t, std::uint64_t to, std::uint64_t length) {
    copy_run(memory + to, from, length);
    from += length;
  });
}

void copy(const Pattern& pattern, const PackedRange& range, std::span<const std::byte> piece,
          std::uint64_t piece_offset, std::byte* memory) {
  pattern.for_each_run(range, [&](std::uint64_t stored, std::uint64_t to, std::uint64_t length) {
    copy_run(memory + to, bytes_at(piece, piece_offset, stored, length), length);
  });
}

}  // namespace kedge::arrays

// What an exchange does to this member's files: reads inputs, writes sums, and remembers the first failure.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "codec/reed_solomon.hpp"
#include "redundancy/exchange.hpp"
#include "redundancy/plan_pieces.hpp"
#include "redundancy/plan_stripes.hpp"

namespace kedge::redundancy {

/// Memory as aligned as the codec likes it. It grows to what is asked for, then without what it held, and is used
/// again.
class Buffer {
 public:
  std::span<std::byte> room(std::uint64_t size_bytes) {
    const std::uint64_t lines = (size_bytes + sizeof(Line) - 1) / sizeof(Line);
    if (count_ < lines) {
      lines_ = std::make_unique_for_overwrite<Line[]>(lines);  // NOLINT(*-avoid-c-arrays): a vector would clear it
      count_ = lines;
    }
    return std::as_writable_bytes(std::span(lines_.get(), count_)).first(size_bytes);
  }

 private:
  struct alignas(64) Line {
    std::array<std::byte, 64> bytes;
  };
  std::unique_ptr<Line[]> lines_;  // NOLINT(*-avoid-c-arrays)
  std::uint64_t count_ = 0;
};

class Files {
 public:
  Files(std::size_t stripes, const PartFile& container, const PartFile& parity)
      : container_(container), parity_(parity) {
    result_.written.resize(stripes);
    result_.read.resize(stripes);
  }

  /// Bytes of an input of stripe `number`, from where they lie or through `buffer`; zeros after a failure.
  [[nodiscard]] std::span<const std::byte> fetch(const Input& input, const Piece& part, std::size_t number,
                                                 Buffer& buffer);
  /// The sum of the terms to its place, block by block; nothing after a failure.
  void store(const Stripe& stripe, const Piece& piece, std::size_t number, std::span<const codec::Term> terms);

  [[nodiscard]] Exchanged& result() noexcept { return result_; }

 private:
  [[nodiscard]] const PartFile& file_of(Part part) const { return part == Part::container ? container_ : parity_; }

  const PartFile& container_;
  const PartFile& parity_;
  Buffer sum_;
  Exchanged result_;
};

}  // namespace kedge::redundancy

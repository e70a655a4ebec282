// What the tests of redundancy share: contents, and stripes carried out naively in memory.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "checksum/crc32c.hpp"
#include "fs/file_system.hpp"
#include "harness/naive_gf256.hpp"
#include "kedge/error.hpp"
#include "redundancy/plan_stripes.hpp"

namespace kedge::redundancy {

using Bytes = std::vector<std::byte>;

inline Bytes content(std::uint64_t size, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Bytes bytes(size);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

/// The files of one set, by position.
struct SetFiles {
  std::vector<Bytes> container;
  std::vector<Bytes> parity;

  [[nodiscard]] Bytes& of(std::uint32_t member, MemberPart part) {
    return part == MemberPart::container ? container.at(member) : parity.at(member);
  }
  bool operator==(const SetFiles&) const = default;
};

/// Byte by byte, one stripe after the other; a byte outside of a file throws std::out_of_range.
inline void execute(SetFiles& files, const std::vector<Stripe>& stripes) {
  for (const Stripe& stripe : stripes) {
    Bytes& target = files.of(stripe.target, stripe.part);
    for (std::uint64_t i = 0; i < stripe.length; ++i) {
      std::byte sum{0};
      for (const StripeInput& input : stripe.inputs) {
        if (i < input.length) sum ^= times(input.coefficient, files.of(input.member, input.part).at(input.offset + i));
      }
      target.at(stripe.offset + i) = sum;
    }
  }
}

/// Containers with contents, and their parity.
inline SetFiles encoded(const SetShape& set) {
  SetFiles files;
  for (std::uint32_t member = 0; member < set.sizes.size(); ++member) {
    files.container.push_back(content(set.sizes[member], member + 1));
    files.parity.emplace_back(parity_bytes(set, member), std::byte{0xee});
  }
  execute(files, encode_stripes(set));
  return files;
}

/// A file that is a vector.
class MemoryFile final : public fs::ByteAccess {
 public:
  explicit MemoryFile(Bytes bytes) : bytes_(std::move(bytes)) {}

  std::uint32_t write_with_crc(std::uint64_t offset, std::span<const std::byte> bytes, std::uint32_t crc) override {
    std::ranges::copy(bytes, at(offset, bytes.size()).begin());
    return crc32c(bytes, crc);
  }
  std::uint32_t read_with_crc(std::uint64_t offset, std::span<std::byte> bytes, std::uint32_t crc) override {
    std::ranges::copy(at(offset, bytes.size()), bytes.begin());
    return crc32c(bytes, crc);
  }
  std::uint32_t checksum(std::uint64_t offset, std::uint64_t length, std::uint32_t crc) override {
    return crc32c(at(offset, length), crc);
  }
  [[nodiscard]] const Bytes& bytes() const noexcept { return bytes_; }

 private:
  std::span<std::byte> at(std::uint64_t offset, std::uint64_t length) {
    if (offset + length > bytes_.size()) throw Error(ErrorCode::corrupt, "truncated");
    return std::span(bytes_).subspan(offset, length);
  }
  Bytes bytes_;
};

}  // namespace kedge::redundancy

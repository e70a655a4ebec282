#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <vector>

#include "codec/xor.hpp"
#include "kedge/error.hpp"

namespace kedge::codec {
namespace {

using Bytes = std::vector<std::byte>;
using Spans = std::vector<std::span<const std::byte>>;

Bytes noise(std::size_t size, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Bytes bytes(size);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

Bytes naive(std::size_t size, const Spans& inputs) {
  Bytes sum(size, std::byte{0});
  for (const auto& input : inputs) {
    for (std::size_t i = 0; i < input.size(); ++i) sum[i] ^= input[i];
  }
  return sum;
}

/// Memory whose begin is as misaligned as wanted, with a margin on both sides that must stay as it is.
class Place {
 public:
  Place(std::size_t size, std::size_t misalignment)
      : memory_(size + misalignment + 3 * kMargin, std::byte{0xa5}), size_(size) {
    const auto memory = reinterpret_cast<std::uintptr_t>(memory_.data());  // NOLINT(*-reinterpret-cast)
    begin_ = kMargin + (kMargin - memory % kMargin) % kMargin + misalignment;
  }
  std::span<std::byte> bytes() { return std::span(memory_).subspan(begin_, size_); }
  bool margins_are_untouched() const {
    for (std::size_t i = 0; i < memory_.size(); ++i) {
      if ((i < begin_ || i >= begin_ + size_) && memory_[i] != std::byte{0xa5}) return false;
    }
    return true;
  }

 private:
  static constexpr std::size_t kMargin = 64;
  Bytes memory_;
  std::size_t size_;
  std::size_t begin_ = 0;
};

bool right(std::span<std::byte> out, const Spans& inputs) {
  const Bytes expected = naive(out.size(), inputs);
  xor_into(out, inputs);
  return std::ranges::equal(out, expected);
}

TEST(Xor, EqualsTheNaiveLoopAtEachSmallLengthAndAlignment) {
  const Bytes pool = noise(4096, 1);
  for (std::size_t length = 0; length <= 200; ++length) {
    for (std::size_t off = 0; off < 33; ++off) {
      for (const std::size_t count : {0U, 1U, 2U, 3U, 5U}) {
        Place place(length, off);
        Spans inputs;
        for (std::size_t i = 0; i < count; ++i) inputs.push_back(std::span(pool).subspan(i * 300 + i * off, length));
        ASSERT_TRUE(right(place.bytes(), inputs)) << length << " bytes at " << off << " of " << count;
        ASSERT_TRUE(place.margins_are_untouched()) << length << " bytes at " << off << " of " << count;
      }
    }
  }
}

TEST(Xor, EqualsTheNaiveLoopWhereAllAreAlignedAlike) {  // where ISA-L does it, behind a head of up to 31 bytes
  const Bytes pool = noise(80000, 5);
  for (const std::size_t length : {255U, 256U, 257U, 300U, 1000U, 4095U, 4096U, 4097U, 70001U}) {
    for (std::size_t off = 0; off < 33; ++off) {
      for (const std::size_t count : {2U, 3U, 9U, 33U}) {
        std::vector<Place> sources;
        Spans inputs;
        sources.reserve(count);
        for (std::size_t i = 0; i < count; ++i) {
          std::ranges::copy(std::span(pool).subspan(i * 100, length),
                            sources.emplace_back(length, off).bytes().begin());
          inputs.emplace_back(sources.back().bytes());
        }
        Place place(length, off);
        ASSERT_TRUE(right(place.bytes(), inputs)) << length << " bytes at " << off << " of " << count;
        ASSERT_TRUE(place.margins_are_untouched()) << length << " bytes at " << off << " of " << count;
      }
    }
  }
}

TEST(Xor, ContinuesShorterInputsWithZeros) {
  const Bytes pool = noise(40000, 2);
  const std::vector<std::size_t> lengths = {0, 1, 31, 32, 33, 255, 4096, 5000, 9999, 10000};
  for (const std::size_t first : lengths) {
    for (const std::size_t second : lengths) {
      for (const std::size_t third : lengths) {
        Bytes out(10000, std::byte{0x77});
        ASSERT_TRUE(right(out, {std::span(pool).first(first), std::span(pool).subspan(10016, second),
                                std::span(pool).subspan(20001, third)}))
            << first << ", " << second << ", " << third;
      }
    }
  }
}

TEST(Xor, TheResultMayBeOneOfTheInputs) {
  for (const std::size_t off : {0U, 1U}) {
    for (const std::size_t length : {5U, 500U, 5000U}) {
      const Bytes other = noise(length, 3);
      for (const std::size_t shorter : {std::size_t{0}, length / 2, length}) {
        Place place(length, off);
        std::ranges::copy(noise(length, 4), place.bytes().begin());
        EXPECT_TRUE(right(place.bytes(), {other, place.bytes().first(shorter)}));
        EXPECT_TRUE(right(place.bytes(), {place.bytes()}));
      }
    }
  }
}

TEST(Xor, RefusesAnInputThatIsLongerThanTheResult) {
  Bytes out(10);
  const Bytes longer(11);
  const Spans inputs = {longer};
  EXPECT_THROW(xor_into(out, inputs), Error);
}

}  // namespace
}  // namespace kedge::codec

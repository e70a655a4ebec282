// XOR and Reed-Solomon against naive loops, at each small length and alignment; every pattern of losses that a set
// tolerates is inverted, and more are refused.
#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <vector>

#include "codec/reed_solomon.hpp"
#include "codec/xor.hpp"
#include "harness/naive_gf256.hpp"
#include "kedge/error.hpp"

namespace kedge::codec::codec_test {
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

bool right(std::span<std::byte> out, const std::vector<Term>& terms) {
  Bytes expected(out.size(), std::byte{0});
  for (const auto& [bytes, coefficient] : terms) {
    for (std::size_t i = 0; i < bytes.size(); ++i) expected[i] ^= times(coefficient, bytes[i]);
  }
  combine_into(out, terms);
  return std::ranges::equal(out, expected);
}

TEST(Combine, EqualsTheNaiveLoopAtEachSmallLengthAndAlignment) {
  const Bytes pool = noise(8192, 1);
  for (std::size_t length = 0; length <= 200; ++length) {
    for (const std::size_t off : {0U, 1U, 7U, 16U, 31U, 33U}) {
      for (const std::size_t count : {1U, 2U, 3U, 5U, 9U}) {
        Place place(length, off);
        std::vector<Term> terms;
        for (std::size_t i = 0; i < count; ++i) {
          terms.push_back(
              {std::span(pool).subspan(i * 300 + i * off, length), static_cast<std::uint8_t>(255 - 28 * i)});
        }
        ASSERT_TRUE(right(place.bytes(), terms)) << length << " bytes at " << off << " of " << count;
        ASSERT_TRUE(place.margins_are_untouched()) << length << " bytes at " << off << " of " << count;
      }
    }
  }
}

TEST(Combine, ContinuesShorterTermsWithZeros) {
  const Bytes pool = noise(40000, 2);
  const std::vector<std::size_t> lengths = {0, 1, 31, 32, 33, 255, 4096, 9999, 10000};
  for (const std::size_t first : lengths) {
    for (const std::size_t second : lengths) {
      Bytes out(10000, std::byte{0x77});
      ASSERT_TRUE(right(out, {{std::span(pool).first(first), 3}, {std::span(pool).subspan(10016, second), 1}}))
          << first << ", " << second;
      ASSERT_TRUE(right(out, {{std::span(pool).first(first), 1}, {std::span(pool).subspan(10016, second), 1}}))
          << first << ", " << second;
    }
  }
  Bytes out(100, std::byte{0x77});
  EXPECT_TRUE(right(out, std::vector<Term>{}));
}

TEST(Combine, TheResultMayBeOneOfTheTerms) {
  for (const std::size_t length : {5U, 500U, 200'000U}) {
    const Bytes other = noise(length, 3);
    for (const std::size_t shorter : {std::size_t{0}, length / 2, length}) {
      for (const std::size_t off : {0U, 1U}) {
        Place place(length, off);
        std::ranges::copy(noise(length, 4), place.bytes().begin());
        EXPECT_TRUE(right(place.bytes(), std::vector<Term>{{other, 77}, {place.bytes().first(shorter), 201}}));
        EXPECT_TRUE(right(place.bytes(), std::vector<Term>{{place.bytes(), 2}}));
      }
    }
  }
}

TEST(Combine, RefusesATermThatIsLongerThanTheResult) {
  Bytes out(10);
  const Bytes longer(11);
  EXPECT_THROW(combine_into(out, std::vector<Term>{{longer, 2}}), Error);
  EXPECT_THROW(combine_into(out, std::vector<Term>{{longer, 1}}), Error);
}

/// Symbols as single bytes: data at random, parity by the coefficients.
std::vector<std::byte> word_of(const ErasureCode& code, std::uint64_t seed) {
  Bytes word = noise(code.data_count(), seed);
  for (std::uint32_t parity = 0; parity < code.parity_count(); ++parity) {
    std::byte sum{0};
    for (std::uint32_t data = 0; data < code.data_count(); ++data)
      sum ^= times(code.coefficient(parity, data), word[data]);
    word.push_back(sum);
  }
  return word;
}

/// Every symbol that is lost comes out of the others.
void lose(const ErasureCode& code, const Bytes& word, const std::vector<bool>& present) {
  for (std::uint32_t symbol = 0; symbol < word.size(); ++symbol) {
    if (present[symbol]) continue;
    std::byte sum{0};
    for (const auto& [part, coefficient] : code.solve_for(symbol, present)) {
      ASSERT_TRUE(present[part]);
      sum ^= times(coefficient, word[part]);
    }
    ASSERT_EQ(sum, word[symbol]) << code.data_count() << " + " << code.parity_count() << ", symbol " << symbol;
  }
}

/// Each way to lose `left` symbols from `first` on.
template <class Visit>
void each_loss(std::vector<bool>& present, std::uint32_t first, std::uint32_t left, Visit&& visit) {
  if (left == 0) {
    visit();
    return;
  }
  for (std::uint32_t symbol = first; symbol + left <= present.size(); ++symbol) {
    present[symbol] = false;
    each_loss(present, symbol + 1, left - 1, visit);
    present[symbol] = true;
  }
}

TEST(ErasureCode, EveryLossPatternOfEverySetIsInverted) {
  // All that the plan can produce: sets of m + 1 to 32 members. The most patterns of one are 35,960 losses of 4 of 32.
  std::uint64_t patterns = 0;
  for (std::uint32_t parity = 1; parity <= 4; ++parity) {
    for (std::uint32_t members = parity + 1; members <= 32; ++members) {
      const ErasureCode code(members - parity, parity);
      const Bytes word = word_of(code, members);
      std::vector<bool> present(members, true);
      for (std::uint32_t lost = 1; lost <= parity; ++lost) {
        each_loss(present, 0, lost, [&] {
          ++patterns;
          lose(code, word, present);
        });
        if (HasFatalFailure()) return;
      }
    }
  }
  EXPECT_GT(patterns, 300'000U);
}

TEST(ErasureCode, MoreLossesThanParityAreRefused) {
  const ErasureCode code(3, 2);
  EXPECT_THROW(static_cast<void>(code.solve_for(0, {false, false, false, true, true})), Error);
  EXPECT_THROW(static_cast<void>(code.solve_for(0, {false, true, true, false, false})), Error);
  EXPECT_NO_THROW(static_cast<void>(code.solve_for(4, {true, true, true, false, false})));
  EXPECT_THROW(ErasureCode(0, 1), Error);
  EXPECT_THROW(ErasureCode(1, 0), Error);
  EXPECT_THROW(ErasureCode(253, 4), Error);
}

TEST(ErasureCode, CoefficientsAreThoseThatTheFormatNames) {
  const ErasureCode code(30, 4);
  for (std::uint32_t parity = 0; parity < 4; ++parity) {
    for (std::uint32_t data = 0; data < 30; ++data) {
      const auto divisor = static_cast<std::uint8_t>((30 + parity) ^ data);
      EXPECT_EQ(times(code.coefficient(parity, data), static_cast<std::byte>(divisor)), std::byte{1});
    }
  }
  const ErasureCode plain(5, 1);
  for (std::uint32_t data = 0; data < 5; ++data) EXPECT_EQ(plain.coefficient(0, data), 1U);
}

}  // namespace
}  // namespace kedge::codec::codec_test

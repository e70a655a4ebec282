// Parity of pieces as protect makes it, and lost pieces rebuilt. Rates are of user data: all inputs once.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "codec/reed_solomon.hpp"
#include "codec/xor.hpp"
#include "require.hpp"

namespace kedge_bench {
namespace {

constexpr std::size_t kPieceBytes = std::size_t{1} << 20U;
constexpr std::size_t kAlignment = 64;

/// Made-up bytes, so many beyond an address that is aligned to 64.
class Piece {
 public:
  explicit Piece(std::uint64_t seed, std::size_t beyond = 0)
      : storage_(some_bytes(kPieceBytes + 2 * kAlignment, seed)) {
    void* begin = storage_.data();
    std::size_t room = storage_.size();
    bytes_ = {static_cast<std::byte*>(std::align(kAlignment, kPieceBytes + beyond, begin, room)) + beyond, kPieceBytes};
  }
  [[nodiscard]] std::span<std::byte> bytes() const noexcept { return bytes_; }

 private:
  std::vector<std::byte> storage_;  // whose memory stays where it is when it is moved
  std::span<std::byte> bytes_;
};

using Symbols = std::vector<Piece>;

Symbols some_symbols(std::size_t count, std::size_t apart = 0) {
  Symbols symbols;
  for (std::size_t i = 0; i < count; ++i) symbols.emplace_back(i + 1, i * apart % kAlignment);
  return symbols;
}

void set_rate(benchmark::State& state, std::size_t inputs) {
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(inputs * kPieceBytes));
}

/// In GF(2^8) modulo 0x11d, bit by bit: nothing of what is measured.
std::uint8_t product(std::uint8_t a, std::uint8_t b) {
  unsigned result = 0;
  for (unsigned bit = 0, shifted = a; bit < 8; ++bit) {
    if ((unsigned{b} >> bit & 1U) != 0) result ^= shifted;
    shifted = shifted << 1U ^ ((shifted & 0x80U) != 0 ? 0x11dU : 0U);
  }
  return static_cast<std::uint8_t>(result);
}

void xor_of(benchmark::State& state, const Symbols& inputs) {
  std::vector<std::span<const std::byte>> spans;
  for (const Piece& input : inputs) spans.emplace_back(input.bytes());
  const Piece out(0);
  for (auto _ : state) kedge::codec::xor_into(out.bytes(), spans);
  for (std::size_t i = 0; i < kPieceBytes; i += 97) {
    std::byte sum{0};
    for (const auto& input : spans) sum ^= input[i];
    require(out.bytes()[i] == sum, "XOR");
  }
  set_rate(state, inputs.size());
}

void xor_pieces(benchmark::State& state) { xor_of(state, some_symbols(static_cast<std::size_t>(state.range(0)))); }

void xor_pieces_unaligned(benchmark::State& state) {
  xor_of(state, some_symbols(static_cast<std::size_t>(state.range(0)), 5));
}

/// A code with its data, made-up, and its parity, as the code makes it.
struct Coded {
  Coded(std::size_t data_symbols, std::size_t parity_symbols)
      : code(static_cast<std::uint32_t>(data_symbols), static_cast<std::uint32_t>(parity_symbols)),
        symbols(some_symbols(data_symbols + parity_symbols)) {}
  void encode() {
    for (std::uint32_t j = 0; j < code.parity_count(); ++j) {
      std::vector<kedge::codec::Term> terms;
      for (std::uint32_t i = 0; i < code.data_count(); ++i)
        terms.push_back({symbols[i].bytes(), code.coefficient(j, i)});
      kedge::codec::combine_into(symbols[code.data_count() + j].bytes(), terms);
    }
  }

  kedge::codec::ErasureCode code;
  Symbols symbols;
};

Coded coded(const benchmark::State& state) {
  return {static_cast<std::size_t>(state.range(0)), static_cast<std::size_t>(state.range(1))};
}

void reed_solomon_encode(benchmark::State& state) {
  Coded coded_now = coded(state);
  const kedge::codec::ErasureCode& code = coded_now.code;
  for (auto _ : state) coded_now.encode();
  for (std::uint32_t j = 0; j < code.parity_count(); ++j) {
    for (std::size_t at = 0; at < kPieceBytes; at += 997) {
      std::uint8_t sum = 0;
      for (std::uint32_t i = 0; i < code.data_count(); ++i) {
        sum ^= product(static_cast<std::uint8_t>(coded_now.symbols[i].bytes()[at]), code.coefficient(j, i));
      }
      require(coded_now.symbols[code.data_count() + j].bytes()[at] == std::byte{sum}, "Reed-Solomon parity");
    }
  }
  set_rate(state, code.data_count());
}

/// As many data symbols as there is parity are lost, or all of them.
void reed_solomon_decode(benchmark::State& state) {
  Coded coded_now = coded(state);
  coded_now.encode();
  const kedge::codec::ErasureCode& code = coded_now.code;
  const std::uint32_t lost = std::min(code.data_count(), code.parity_count());
  std::vector<bool> present(coded_now.symbols.size(), true);
  std::fill_n(present.begin(), lost, false);
  const Symbols made = some_symbols(lost);
  for (const Piece& symbol : made) std::ranges::fill(symbol.bytes(), std::byte{0});
  for (auto _ : state) {
    for (std::uint32_t i = 0; i < lost; ++i) {
      std::vector<kedge::codec::Term> terms;
      for (const auto& part : code.solve_for(i, present)) {
        terms.push_back({coded_now.symbols[part.symbol].bytes(), part.coefficient});
      }
      kedge::codec::combine_into(made[i].bytes(), terms);
    }
  }
  for (std::uint32_t i = 0; i < lost; ++i) {
    require(std::ranges::equal(made[i].bytes(), coded_now.symbols[i].bytes()), "decoded symbol");
  }
  set_rate(state, code.data_count());
}

/// Data symbols, parity symbols.
void codes(benchmark::internal::Benchmark* benchmark) {
  for (const auto& [data, parity] : {std::pair{2, 2}, {6, 2}, {5, 3}, {4, 4}, {28, 4}}) benchmark->Args({data, parity});
}

BENCHMARK(xor_pieces)->DenseRange(2, 8);
BENCHMARK(xor_pieces_unaligned)->DenseRange(2, 8, 2);
BENCHMARK(reed_solomon_encode)->Apply(codes);
BENCHMARK(reed_solomon_decode)->Apply(codes);

}  // namespace
}  // namespace kedge_bench

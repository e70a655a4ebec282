// The kernels that take a checksum on the way, each that this processor has, beside memcpy and beside ISA-L's checksum
// and a copy, one after the other.
#include <benchmark/benchmark.h>

#include <array>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "checksum/copy_with_checksum.hpp"
#include "checksum/crc32c.hpp"
#include "codec/reed_solomon.hpp"
#include "require.hpp"

namespace kedge_bench {
namespace {

constexpr std::size_t kSources = 3;  // of a set of four
constexpr std::size_t kBlock = std::size_t{128} << 10U;

struct Memory {
  explicit Memory(benchmark::State& state) : size(static_cast<std::size_t>(state.range(0))), to(size, std::byte{1}) {
    for (std::size_t i = 0; i < kSources; ++i) from.push_back(some_bytes(size, static_cast<std::uint32_t>(i + 1)));
  }
  std::size_t size;
  std::vector<std::vector<std::byte>> from;
  std::vector<std::byte> to;
};

void set_rate(benchmark::State& state) { state.SetBytesProcessed(state.iterations() * state.range(0)); }

void copy_by(benchmark::State& state, const kedge::checksum::Kernel& kernel) {
  Memory memory(state);
  std::uint32_t crc = 0;
  for (auto _ : state) crc = kedge::copy_with_checksum(memory.to, memory.from[0], 0, kernel);
  require(memory.to == memory.from[0] && crc == kedge::crc32c(memory.from[0]), "a copy with its checksum");
  set_rate(state);
}

void xor_by(benchmark::State& state, const kedge::checksum::Kernel& kernel) {
  Memory memory(state);
  const std::vector<std::span<const std::byte>> from(memory.from.begin(), memory.from.end());
  std::uint32_t crc = 0;
  for (auto _ : state) crc = kedge::xor_with_checksum(memory.to, from, 0, kernel);
  require(crc == kedge::crc32c(memory.to), "an XOR with its checksum");
  set_rate(state);
}

void checksum_then_copy(benchmark::State& state) {
  Memory memory(state);
  std::uint32_t crc = 0;
  for (auto _ : state) {
    crc = 0;
    for (std::size_t at = 0; at < memory.size; at += kBlock) {
      const auto piece = std::span(memory.from[0]).subspan(at, std::min(kBlock, memory.size - at));
      crc = kedge::crc32c(piece, crc);
      std::memcpy(memory.to.data() + at, piece.data(), piece.size());
    }
  }
  require(memory.to == memory.from[0] && crc == kedge::crc32c(memory.from[0]), "a checksum and a copy");
  set_rate(state);
}

/// In pieces that stay in a cache.
void xor_then_copy(benchmark::State& state) {
  Memory memory(state);
  std::vector<std::byte> sum(kBlock);
  std::uint32_t crc = 0;
  for (auto _ : state) {
    crc = 0;
    for (std::size_t at = 0; at < memory.size; at += kBlock) {
      const auto piece = std::span(sum).first(std::min(kBlock, memory.size - at));
      std::array<kedge::codec::Term, kSources> terms;
      for (std::size_t i = 0; i < kSources; ++i) {
        terms.at(i) = {std::span(memory.from[i]).subspan(at, piece.size()), 1};
      }
      kedge::codec::combine_into(piece, terms);
      crc = kedge::copy_with_checksum(std::span(memory.to).subspan(at, piece.size()), piece, crc);
    }
  }
  require(crc == kedge::crc32c(memory.to), "an XOR, and a copy with its checksum");
  set_rate(state);
}

void memcpy_of_them(benchmark::State& state) {
  Memory memory(state);
  for (auto _ : state) {
    std::memcpy(memory.to.data(), memory.from[0].data(), memory.size);
    benchmark::ClobberMemory();
  }
  set_rate(state);
}

void sizes(benchmark::internal::Benchmark* benchmark) {
  for (const std::int64_t kib : {4, 512, 64 * 1024}) benchmark->Arg(kib << 10U);
}

const bool registered = [] {
  benchmark::RegisterBenchmark("checksum/memcpy", memcpy_of_them)->Apply(sizes);
  benchmark::RegisterBenchmark("checksum/isal_then_memcpy", checksum_then_copy)->Apply(sizes);
  benchmark::RegisterBenchmark("checksum/xor_then_copy", xor_then_copy)->Apply(sizes);
  for (const kedge::checksum::Kernel& kernel : kedge::checksum::kernels()) {
    if (!kernel.is_supported) continue;
    const std::string name = kernel.name;
    benchmark::RegisterBenchmark(("checksum/copy_" + name).c_str(), copy_by, kernel)->Apply(sizes);
    benchmark::RegisterBenchmark(("checksum/xor_" + name).c_str(), xor_by, kernel)->Apply(sizes);
  }
  return true;
}();

}  // namespace
}  // namespace kedge_bench

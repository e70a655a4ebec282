// Micro-benchmarks check what they compute: a fast wrong answer ends the program.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

namespace kedge_bench {

/// Throws std::runtime_error, which ends the program with exit code 1. KEDGE_BENCH_SPOIL makes everything wrong, for
/// the test that this is noticed.
inline void require(bool right, const std::string& what) {
  if (!right || std::getenv("KEDGE_BENCH_SPOIL") != nullptr) throw std::runtime_error("wrong: " + what);
}

/// Bytes that look random, another sequence for each seed.
inline std::vector<std::byte> some_bytes(std::size_t size, std::uint64_t seed) {
  std::vector<std::byte> bytes(size);
  std::uint64_t state = seed * 0x9e3779b97f4a7c15U + 1;
  for (std::byte& byte : bytes) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    byte = static_cast<std::byte>(state >> 56U);
  }
  return bytes;
}

}  // namespace kedge_bench

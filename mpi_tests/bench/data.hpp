// The data of the benchmark, and whether it came back. Nothing of Kedge is used here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace kedge_bench {

/// A rank's memory: what it saves, and where it reads to. Every page was touched.
struct Buffers {
  explicit Buffers(std::uint64_t size_bytes) : data(size_bytes / sizeof(std::uint64_t), 1), back(data.size(), 2) {}
  std::vector<std::uint64_t> data;
  std::vector<std::uint64_t> back;

  [[nodiscard]] std::span<std::byte> data_bytes() { return std::as_writable_bytes(std::span(data)); }
  [[nodiscard]] std::span<std::byte> back_bytes() { return std::as_writable_bytes(std::span(back)); }
};

/// The content with this number: every byte differs from that of the 255 numbers before it.
void fill(std::span<std::uint64_t> words, int rank, std::uint64_t number);

/// The elements from `first` on of the global array with this number: the same whoever has them.
void fill_from(std::uint64_t first, std::span<std::uint64_t> words, std::uint64_t number);

}  // namespace kedge_bench

// The copy of a region into a container's mapping, with its checksums, beside a bare memcpy.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

#include "checksum/crc32c.hpp"
#include "format/region_copy.hpp"
#include "fs/file_system.hpp"
#include "require.hpp"

namespace kedge_bench {
namespace {

/// A file on memory, mapped whole, as a recycled container is.
class MappedFile {
 public:
  explicit MappedFile(std::uint64_t size_bytes) {
    std::string name = (std::filesystem::is_directory("/dev/shm") ? "/dev/shm" : "/tmp") + std::string("/kedge-XXXXXX");
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot make a directory as " + name);
    directory_ = name;
    const auto file = kedge::fs::posix_file_system()->create(directory_ + "/file");
    file->reserve(size_bytes);
    mapping_ = file->map(size_bytes);
  }
  ~MappedFile() {
    mapping_.reset();
    std::error_code ignored;
    std::filesystem::remove_all(directory_, ignored);
  }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  [[nodiscard]] kedge::fs::Mapping& mapping() { return *mapping_; }

 private:
  std::string directory_;
  std::unique_ptr<kedge::fs::Mapping> mapping_;
};

void set_rate(benchmark::State& state) { state.SetBytesProcessed(state.iterations() * state.range(0)); }

void plain_memcpy(benchmark::State& state) {
  const auto from = some_bytes(static_cast<std::size_t>(state.range(0)), 1);
  std::vector<std::byte> to(from.size(), std::byte{1});
  for (auto _ : state) {
    std::memcpy(to.data(), from.data(), from.size());
    benchmark::ClobberMemory();
  }
  require(to == from, "memcpy");
  set_rate(state);
}

void copy_with_checksum(benchmark::State& state) {
  const auto from = some_bytes(static_cast<std::size_t>(state.range(0)), 2);
  MappedFile file(from.size());
  // Once before, as the pages of a recycled file were used before.
  auto checksums = kedge::format::copy_region_in(file.mapping(), 0, from);
  for (auto _ : state) checksums = kedge::format::copy_region_in(file.mapping(), 0, from);
  require(std::memcmp(file.mapping().bytes().data(), from.data(), from.size()) == 0, "bytes that were copied in");
  constexpr std::size_t kBlock = std::size_t{4} << 20U;
  require(checksums.size() == (from.size() + kBlock - 1) / kBlock, "number of checksums");
  const std::span first(from.data(), std::min(from.size(), kBlock));
  require(checksums.front() == kedge::crc32c(first), "checksum of what was copied in");
  set_rate(state);
}

void copy_out_with_checksum(benchmark::State& state) {
  const auto from = some_bytes(static_cast<std::size_t>(state.range(0)), 3);
  MappedFile file(from.size());
  const auto written = kedge::format::copy_region_in(file.mapping(), 0, from);
  std::vector<std::byte> to(from.size(), std::byte{1});
  kedge::format::BlockChecksums read;
  for (auto _ : state) read = kedge::format::copy_region_out(file.mapping(), 0, to);
  require(to == from && read == written, "bytes or checksums that were copied out");
  set_rate(state);
}

void checksum_only(benchmark::State& state) {
  const auto bytes = some_bytes(static_cast<std::size_t>(state.range(0)), 4);
  std::uint32_t crc = 0;
  for (auto _ : state) {
    crc = kedge::crc32c(bytes);
    benchmark::DoNotOptimize(std::as_const(crc));  // given what may be changed, g++ 12 with a sanitizer loses the value
  }
  const std::size_t half = bytes.size() / 2;
  const std::span all(bytes);
  require(crc == kedge::crc32c(all.subspan(half), kedge::crc32c(all.first(half))), "checksum in two parts");
  set_rate(state);
}

void sizes(benchmark::internal::Benchmark* benchmark) {
  for (const std::int64_t kib : {4, 64, 1024, 64 * 1024}) benchmark->Arg(kib << 10U);
}

BENCHMARK(plain_memcpy)->Apply(sizes);
BENCHMARK(copy_with_checksum)->Apply(sizes);
BENCHMARK(copy_out_with_checksum)->Apply(sizes);
BENCHMARK(checksum_only)->Apply(sizes);

}  // namespace
}  // namespace kedge_bench

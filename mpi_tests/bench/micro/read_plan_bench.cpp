// The plan of a load on another number of ranks: what one home has to find out if it is in charge of all of an array
// (46^3 shards against 40^3 wants), and what a box costs where it is cut into runs of one element.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "arrays/directory.hpp"
#include "arrays/pattern.hpp"
#include "require.hpp"

namespace kedge_bench {
namespace {

using kedge::Shape;
using namespace kedge::arrays;

/// Cubes of an array, in an order that looks random.
std::vector<Box> cubes(std::uint64_t extent, std::uint64_t parts) {
  const auto cut = [&](std::uint64_t i) { return extent * i / parts; };
  const std::uint64_t count = parts * parts * parts;
  std::vector<Box> boxes;
  boxes.reserve(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t number = i * 7919 % count;  // a prime that divides no number of cubes here
    Box box;
    box.dimensions = 3;
    for (std::size_t d = 0; d < 3; ++d) {
      const std::uint64_t at = number / (d == 0 ? 1 : d == 1 ? parts : parts * parts) % parts;
      box.begin[d] = cut(at);
      box.end[d] = cut(at + 1);
    }
    boxes.push_back(box);
  }
  return boxes;
}

/// Shards, wants: the third root of each.
void match_in_one_home(benchmark::State& state) {
  constexpr std::uint64_t kExtent = 1U << 16U;
  const auto saved = cubes(kExtent, static_cast<std::uint64_t>(state.range(0)));
  const auto wanted = cubes(kExtent, static_cast<std::uint64_t>(state.range(1)));
  const ArrayType type{kedge::DataType::float64, {}, Shape{kExtent, kExtent, kExtent}};
  const HomedKey key{LookUp::shard, 0, "u"};
  Directory::Matched matched;
  for (auto _ : state) {
    Directory directory(64, 1);  // one tile
    for (std::uint32_t i = 0; i < saved.size(); ++i) directory.add(key, type, {0, i, i, false, saved[i]});
    for (std::uint32_t i = 0; i < wanted.size(); ++i) directory.ask(key, type, {static_cast<int>(i), 0, 0, wanted[i]});
    matched = directory.match();
  }
  std::uint64_t elements = 0;
  for (const Match& match : matched.matches) elements += volume(match.box);
  require(!matched.refusal && elements == kExtent * kExtent * kExtent, "each element in one match");
  state.counters["matches"] = static_cast<double>(matched.matches.size());
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(saved.size() + wanted.size()));
}

/// A box of 16 MiB that is a column of a stored block: the last extents of the box and of the block.
void copy_column(benchmark::State& state) {
  const auto run = static_cast<std::uint64_t>(state.range(0));
  const std::uint64_t rows = (std::uint64_t{2} << 20U) / run;
  const auto from = some_bytes(rows * (run + 1) * 8, 1);
  std::vector<std::byte> to(rows * run * 8);
  const Pattern pattern(Shape{rows, run}, 8, {Shape{rows, run + 1}, {0, 1}}, {Shape{rows, run}, {}});
  for (auto _ : state) {
    copy(pattern, {0, pattern.size_bytes()}, from, 0, to.data());
    benchmark::ClobberMemory();
  }
  for (std::uint64_t i = 0; i < rows; i += 97) {
    const auto row = std::span(from).subspan((i * (run + 1) + 1) * 8, run * 8);
    require(std::equal(row.begin(), row.end(), to.begin() + static_cast<std::ptrdiff_t>(i * run * 8)), "column");
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(to.size()));
}

BENCHMARK(match_in_one_home)->Args({10, 9})->Args({46, 40})->Args({46, 4})->Unit(benchmark::kMillisecond);
BENCHMARK(copy_column)->Arg(1)->Arg(8)->Arg(512);

}  // namespace
}  // namespace kedge_bench

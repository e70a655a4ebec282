// Readers of blocks: each touched block has one and no other has any; slabs are read by those who want them, and what
// all want a little of is read by all alike.
#include "arrays/choose_readers.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "format/on_disk.hpp"
#include "harness/saved_arrays.hpp"

namespace kedge::arrays::choose_readers_test {
namespace {

using faults::RandomChoices;
using format::kBlockBytes;

/// Cuts an array of 8-byte elements into a grid.
std::vector<Box> grid(const Shape& array, const std::vector<std::uint64_t>& parts) {
  std::vector<Box> boxes = {box_of(array)};
  for (std::size_t d = 0; d < parts.size(); ++d) {
    std::vector<Box> finer;
    for (const Box& box : boxes) {
      for (Box& part : cut_evenly(box, parts[d], d)) finer.push_back(part);
    }
    boxes = std::move(finer);
  }
  return boxes;
}

struct Shares {
  std::map<int, std::uint64_t> read;  ///< bytes, by reader
  std::uint64_t total_read = 0;
  std::uint64_t total_wanted = 0;
  std::uint64_t sent = 0;  ///< bytes that the reader does not want itself
  [[nodiscard]] double busiest(std::size_t processes) const {
    std::uint64_t most = 0;
    for (const auto& [reader, bytes] : read) most = std::max(most, bytes);
    return static_cast<double>(most) * static_cast<double>(processes) / static_cast<double>(total_read);
  }
};

/// As choose.py has it: each saved block is a container with a steward of its own.
Shares shares(const Shape& array, const std::vector<Box>& saved, const std::vector<Box>& wanted, bool steward_reads) {
  Shares result;
  for (std::size_t i = 0; i < saved.size(); ++i) {
    std::vector<WantedPart> parts;
    for (std::size_t p = 0; p < wanted.size(); ++p) {
      if (!overlap(saved[i], wanted[p])) continue;
      const Box part = intersection(saved[i], wanted[p]);
      BoxInArray place{shape_of(saved[i]), {}};
      for (std::size_t d = 0; d < part.dimensions; ++d) place.at[d] = part.begin[d] - saved[i].begin[d];
      parts.push_back({static_cast<int>(p), Pattern(shape_of(part), 8, place, place)});
      result.total_wanted += parts.back().pattern.size_bytes();
    }
    const std::uint64_t size = volume(saved[i]) * 8;
    ReaderChoice choice(i);
    const int steward = static_cast<int>(i * wanted.size() / saved.size());
    const BlockReaders readers = choose_readers(size, parts, steward, steward_reads, choice);
    for (const auto& [block, reader] : readers.blocks) {
      const std::uint64_t begin = block * kBlockBytes;
      const std::uint64_t end = std::min(begin + kBlockBytes, size);
      result.read[reader] += end - begin;
      result.total_read += end - begin;
      for (const WantedPart& part : parts) {
        if (part.process != reader) result.sent += part.pattern.stored_in(begin, end).size_bytes();
      }
    }
  }
  EXPECT_LE(result.total_wanted, volume(box_of(array)) * 8);
  return result;
}

TEST(Readers, SlabsAreReadByThoseWhoWantThem) {
  const Shape array({512, 512, 512});
  for (const std::uint64_t processes : {3U, 8U}) {
    const Shares rows = shares(array, grid(array, {4}), grid(array, {processes}), false);
    EXPECT_EQ(rows.total_read, rows.total_wanted);
    EXPECT_EQ(rows.total_read, volume(box_of(array)) * 8);
    EXPECT_LT(rows.sent, rows.total_wanted / 50) << "blocks on the borders";
    EXPECT_LT(rows.busiest(processes), 1.1);
  }
}

TEST(Readers, WhatAllWantALittleOfIsReadByAllAlike) {
  const Shape array({512, 512, 512});
  const Shares pencils = shares(array, grid(array, {8}), grid(array, {1, 4, 3}), false);
  EXPECT_EQ(pencils.total_read, volume(box_of(array)) * 8) << "once";
  EXPECT_LT(pencils.busiest(12), 1.3) << "choose.py: 1.1; with 'the lowest of those that want most' it would be 12";
  const Shares cubes = shares(array, grid(array, {4, 4, 4}), grid(array, {3, 3, 3}), false);
  EXPECT_EQ(cubes.total_read, volume(box_of(array)) * 8);
  EXPECT_LT(cubes.busiest(27), 2.0);
}

TEST(Readers, StewardsReadWhatIsMapped) {
  const Shape array({512, 512, 512});
  const Shares rows = shares(array, grid(array, {4}), grid(array, {8}), true);
  EXPECT_EQ(rows.read.size(), 4U);
  EXPECT_EQ(rows.total_read, volume(box_of(array)) * 8);
}

TEST(Readers, NoBlockTwiceAndNoneUntouched) {
  RandomChoices random(1);
  for (int round = 0; round < 60; ++round) {
    const Shape stored({1 + random.below(5), 1 + random.below(3), 200'000 + random.below(900'000)});
    const std::uint64_t size = volume(box_of(stored)) * 8;
    std::vector<WantedPart> parts;
    std::set<std::uint64_t> touched;
    for (std::uint64_t i = random.below(9); i > 0; --i) {
      const Box box = box_at_random(stored, random);
      const BoxInArray place{stored, box.begin};
      parts.push_back({random.int_below(5), Pattern(shape_of(box), 8, place, place)});
      for (std::uint64_t block = 0; block * kBlockBytes < size; ++block) {
        const auto range = parts.back().pattern.stored_in(block * kBlockBytes, (block + 1) * kBlockBytes);
        if (range.size_bytes() > 0) touched.insert(block);
      }
    }
    ReaderChoice choice(7);
    const bool steward_reads = random.one_in(3);
    const BlockReaders readers = choose_readers(size, parts, 99, steward_reads, choice);
    std::set<std::uint64_t> read;
    std::uint64_t before = 0;
    std::vector<std::set<int>> expected(parts.size());
    for (const auto& [block, reader] : readers.blocks) {
      EXPECT_TRUE(read.insert(block).second);
      EXPECT_GE(block, std::exchange(before, block));
      bool wants = steward_reads && reader == 99;
      for (std::size_t i = 0; i < parts.size(); ++i) {
        const auto range = parts[i].pattern.stored_in(block * kBlockBytes, (block + 1) * kBlockBytes);
        if (range.size_bytes() == 0) continue;
        expected[i].insert(reader);
        wants = wants || parts[i].process == reader;
      }
      EXPECT_TRUE(wants) << "who reads wants it";
    }
    EXPECT_EQ(read, touched);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      EXPECT_TRUE(std::ranges::equal(readers.readers_of_part[i], expected[i])) << "round " << round;
    }
  }
}

TEST(Readers, AreAmongThoseThatWantAtLeastHalfOfTheMost) {
  ReaderChoice choice(1);
  std::map<int, int> chosen;
  for (int i = 0; i < 100; ++i) {
    ++chosen[choice.choose(std::vector<ReaderChoice::Need>{{3, 100}, {5, 50}, {7, 49}}, 1)];
  }
  EXPECT_EQ(chosen, (std::map<int, int>{{3, 50}, {5, 50}}));
}

}  // namespace
}  // namespace kedge::arrays::choose_readers_test

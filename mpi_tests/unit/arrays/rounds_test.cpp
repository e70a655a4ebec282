// Rounds of a load: nobody sends more than was granted or keeps more than its buffer, and everything arrives, however
// many processes there are and however small their buffers.
#include "arrays/rounds.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "arrays/choose_readers.hpp"
#include "base/text.hpp"
#include "format/on_disk.hpp"
#include "harness/saved_arrays.hpp"

namespace kedge::arrays::rounds_test {
namespace {

using faults::RandomChoices;
using format::kBlockBytes;

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20U;

TEST(Grants, AreEqualSharesOfHalfABuffer) {
  const auto of_three = grants_of(std::vector{2, 5, 9}, 12 * kMiB);
  ASSERT_EQ(of_three.size(), 3U);
  for (const auto& [reader, grant] : of_three) {
    EXPECT_EQ(grant.bytes, 2 * kMiB);
    EXPECT_EQ(grant.turns, 1U);
  }
  EXPECT_TRUE(grants_of({}, 12 * kMiB).empty());
}

TEST(Grants, OfVeryManyReadersAreInTurns) {
  std::vector<int> readers(100'000);
  std::iota(readers.begin(), readers.end(), 0);
  const auto grants = grants_of(readers, 16 * kMiB);
  const std::uint32_t turns = grants.begin()->second.turns;
  EXPECT_GT(turns, 1U);
  std::map<std::uint32_t, std::uint64_t> in_turn;
  for (const auto& [reader, grant] : grants) {
    EXPECT_GE(grant.bytes, 4096U);
    EXPECT_EQ(grant.turns, turns);
    ASSERT_LT(grant.turn, turns);
    in_turn[grant.turn] += grant.bytes;
  }
  for (const auto& [turn, bytes] : in_turn) EXPECT_LE(bytes, 8 * kMiB);
}

/// What happens in the rounds of all processes, without a byte of data.
struct Simulation {
  std::uint64_t rounds = 0;
  std::uint64_t messages = 0;
  std::uint64_t most_in = 0;   ///< that arrived at one process in a round
  std::uint64_t most_out = 0;  ///< of one process's messages and blocks
  std::uint64_t delivered = 0;
};

/// Wanted parts of stored blocks, as their readers know them.
using Orders = std::vector<std::vector<ReadOrder>>;  // by reader

Orders orders_of(const std::vector<Box>& saved, const std::vector<Box>& wanted, bool in_stores,
                 std::vector<std::vector<int>>& readers_of) {
  const auto processes = wanted.size();
  Orders orders(processes);
  readers_of.assign(processes, {});
  for (std::size_t i = 0; i < saved.size(); ++i) {
    std::vector<WantedPart> parts;
    std::vector<ReadOrder::Part> told;
    const int steward = static_cast<int>(i * processes / saved.size());
    for (std::size_t p = 0; p < processes; ++p) {
      if (!overlap(saved[i], wanted[p])) continue;
      const Box part = intersection(saved[i], wanted[p]);
      BoxInArray place{shape_of(saved[i]), {}};
      for (std::size_t d = 0; d < part.dimensions; ++d) place.at[d] = part.begin[d] - saved[i].begin[d];
      parts.push_back({static_cast<int>(p), Pattern(shape_of(part), 8, place, place)});
      told.push_back({static_cast<int>(p), steward, static_cast<std::uint32_t>(p), parts.back().pattern});
    }
    ReaderChoice choice(i);
    const std::uint64_t size = volume(saved[i]) * 8;
    const BlockReaders readers = choose_readers(size, parts, steward, in_stores, choice);
    for (const auto& [block, reader] : readers.blocks) {
      auto& mine = orders[static_cast<std::size_t>(reader)];
      if (mine.empty() || mine.back().logical_rank != i) {
        mine.push_back({"u", static_cast<std::uint32_t>(i), 0, in_stores, size, {}, told});
      }
      mine.back().blocks.push_back(block);
    }
    for (std::size_t part = 0; part < parts.size(); ++part) {
      auto& mine = readers_of[static_cast<std::size_t>(parts[part].process)];
      for (const int reader : readers.readers_of_part[part]) {
        if (reader != parts[part].process) mine.push_back(reader);
      }
    }
  }
  for (auto& readers : readers_of) {
    std::ranges::sort(readers);
    readers.erase(std::ranges::unique(readers).begin(), readers.end());
  }
  return orders;
}

Simulation simulate(const std::vector<Box>& saved, const std::vector<Box>& wanted, bool in_stores,
                    std::uint64_t buffer_bytes) {
  const std::size_t processes = wanted.size();
  std::vector<std::vector<int>> readers_of;
  const Orders orders = orders_of(saved, wanted, in_stores, readers_of);
  std::vector<std::map<int, Grant>> grants(processes);  // by reader, then receiver
  for (std::size_t p = 0; p < processes; ++p) {
    for (const auto& [reader, grant] : grants_of(readers_of[p], buffer_bytes)) {
      grants[static_cast<std::size_t>(reader)].emplace(static_cast<int>(p), grant);
    }
  }
  std::vector<SendRounds> sends;
  for (std::size_t p = 0; p < processes; ++p) {
    sends.emplace_back(orders[p], grants[p], limits_of(buffer_bytes), static_cast<int>(p));
  }
  Simulation result;
  std::vector<std::uint64_t> held(processes, 0);
  while (std::ranges::any_of(sends, [](const SendRounds& one) { return one.has_more(); })) {
    if (++result.rounds > 20'000) break;
    std::vector<std::uint64_t> arrived(processes, 0);
    for (std::size_t p = 0; p < processes; ++p) {
      std::map<int, std::uint64_t> out;
      std::uint64_t sent = 0;
      for (const auto& turn : sends[p].next_round()) {
        const ReadOrder& order = orders[p][turn.order];
        const std::uint64_t begin = order.blocks[turn.block] * kBlockBytes;
        const std::uint64_t size = std::min(kBlockBytes, order.size_bytes - begin);
        if (turn.is_first) held[p] += size;
        for (const auto& chunk : turn.chunks) {
          result.delivered += chunk.range.size_bytes();
          const int receiver = order.parts[chunk.part].process;
          if (receiver == static_cast<int>(p)) continue;
          out[receiver] += sizeof(ChunkHead) + chunk.range.size_bytes();
          sent += sizeof(ChunkHead) + chunk.range.size_bytes();
        }
        result.most_out = std::max(result.most_out, held[p] + sent);
        if (turn.is_last) held[p] -= size;
      }
      for (const auto& [receiver, bytes] : out) {
        EXPECT_LE(bytes + kMessageTailBytes, grants[p].at(receiver).bytes) << "no more than was granted";
        arrived[static_cast<std::size_t>(receiver)] += bytes + kMessageTailBytes;
        ++result.messages;
      }
    }
    result.most_in = std::max(result.most_in, *std::ranges::max_element(arrived));
  }
  return result;
}

std::uint64_t bytes_of(const std::vector<Box>& boxes) {
  std::uint64_t bytes = 0;
  for (const Box& box : boxes) bytes += volume(box) * 8;
  return bytes;
}

struct Named {
  const char* name;
  std::vector<Box> saved;
  std::vector<Box> wanted;
  std::uint64_t rounds_max;
};

std::vector<Box> cubes(const Box& whole, std::uint64_t parts) {
  std::vector<Box> boxes = {whole};
  for (std::size_t d = 0; d < 3; ++d) {
    std::vector<Box> finer;
    for (const Box& box : boxes) {
      for (Box& part : cut_evenly(box, parts, d)) finer.push_back(part);
    }
    boxes = std::move(finer);
  }
  return boxes;
}

/// 1 GiB. A little more rounds than were seen, so that it is noticed if they become many.
TEST(Rounds, EverythingArrivesInBoundedMemory) {
  const Box whole = box_of(Shape({512, 512, 512}));
  std::vector<Box> pencils;
  for (const Box& slab : cut_evenly(whole, 4, 1)) {
    for (const Box& pencil : cut_evenly(slab, 3, 2)) pencils.push_back(pencil);
  }
  const std::vector<Named> cases = {
      {"rows 4 to 3", cut_evenly(whole, 4, 0), cut_evenly(whole, 3, 0), 30},
      {"rows 4 to 8", cut_evenly(whole, 4, 0), cut_evenly(whole, 8, 0), 22},
      {"cubes 64 to 27", cubes(whole, 4), cubes(whole, 3), 25},
      {"cubes 64 to 125", cubes(whole, 4), cubes(whole, 5), 6},
      {"rows 8 to pencils 12", cut_evenly(whole, 8, 0), pencils, 25},
      {"rows 64 to 1", cut_evenly(whole, 64, 0), {whole}, 16},
      {"rows 64 to 997, more than there are", cut_evenly(whole, 64, 0), cut_evenly(whole, 997, 0), 4},
      {"rows 64, 5 want all", cut_evenly(whole, 64, 0), std::vector<Box>(5, whole), 230},
  };
  for (const Named& one : cases) {
    for (const bool in_stores : {true, false}) {
      SCOPED_TRACE(compose("{}, {}", one.name, in_stores ? "stores" : "prefix"));
      const std::uint64_t buffer = 16 * kMiB;
      const Simulation seen = simulate(one.saved, one.wanted, in_stores, buffer);
      EXPECT_EQ(seen.delivered, bytes_of(one.wanted));
      EXPECT_LE(seen.most_in, buffer / 2);
      EXPECT_LE(seen.most_out, buffer / 2 + kBlockBytes + 4096);
      EXPECT_LE(seen.rounds, one.rounds_max);
      RecordProperty(compose("{} {}", one.name, in_stores),
                     compose("{} rounds {} messages", seen.rounds, seen.messages));
    }
  }
}

TEST(Rounds, EndHoweverSmallTheBuffer) {
  RandomChoices random(1);
  for (int round = 0; round < 40; ++round) {
    const Box whole = box_of(Shape({1 + random.below(9), 1 + random.below(900), 1 + random.below(90)}));
    const auto saved = cut_at_random(whole, 1 + random.below(20), random);
    const auto wanted = cut_at_random(whole, 1 + random.below(30), random);
    const std::uint64_t buffer = random.one_of({std::uint64_t{0}, std::uint64_t{40'000}, kMiB});
    const Simulation seen = simulate(saved, wanted, random.one_in(2), buffer);
    EXPECT_EQ(seen.delivered, bytes_of(wanted)) << "round " << round;
    EXPECT_LE(seen.most_in, std::max<std::uint64_t>(4096, buffer / 2)) << "round " << round;
    EXPECT_LE(seen.most_out, std::max(kBlockBytes, buffer / 2) + 4096) << "round " << round;
  }
}

TEST(Rounds, ReadSoManyBlocksAtMost) {
  const Box whole = box_of(Shape{200 * kBlockBytes / 8});
  std::vector<std::vector<int>> readers_of;
  const Orders orders = orders_of({whole}, {whole}, false, readers_of);
  SendRounds sends(orders[0], {}, limits_of(16 * kMiB), 0);
  std::uint64_t blocks = 0;
  while (sends.has_more()) {
    const auto turns = sends.next_round();
    EXPECT_LE(turns.size(), 16U);
    EXPECT_FALSE(turns.empty());
    blocks += turns.size();
  }
  EXPECT_EQ(blocks, 200U);
}

}  // namespace
}  // namespace kedge::arrays::rounds_test

// Random sets through the exchange: what was lost comes back, a flipped bit in what is read is noticed, and a member
// that fails or dies spoils nothing in silence.
#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include "base/text.hpp"
#include "harness/random_choices.hpp"
#include "harness/seeds.hpp"
#include "unit/redundancy/exchange_fixture.hpp"

namespace kedge::redundancy::exchange_fuzz_test {
namespace {

using faults::RandomChoices;

std::uint64_t padding_bytes(MemberPart part) { return part == MemberPart::parity ? kHeader : 0; }

bool is_there(const PresentFiles& present, std::uint32_t member, MemberPart part) {
  return part == MemberPart::container ? present.container[member] : present.parity[member];
}

SetShape draw_set(RandomChoices& choices) {
  SetShape set;
  set.scheme = choices.one_of({Scheme::partner, Scheme::xor_, Scheme::rs, Scheme::rs, Scheme::rs});
  const bool rs = set.scheme == Scheme::rs;
  const std::uint64_t members = rs ? 3 + choices.below(6) : 2 + choices.below(7);
  if (rs) set.parity_count = 2 + static_cast<std::uint32_t>(choices.below(std::min<std::uint64_t>(3, members - 2)));
  for (std::uint64_t i = 0; i < members; ++i) {
    set.sizes.push_back(
        choices.one_of<std::uint64_t>({0, 0, 1, 3, 4095, 4096, 4097, 8192, 50'001, 70'000, 131'072, 131'073, 200'003}));
  }
  return set;
}

/// Containers, parity or both of some members are lost, never more than can be rebuilt.
PresentFiles draw_presence(RandomChoices& choices, const SetShape& set) {
  const std::size_t members = set.sizes.size();
  for (;;) {
    PresentFiles present{std::vector<bool>(members, true), std::vector<bool>(members, true)};
    const std::uint64_t lost = 1 + choices.below(set.parity_count);
    for (std::uint64_t i = 0; i < lost; ++i) {
      const std::uint64_t member = choices.below(members);
      const std::uint64_t what = choices.below(3);
      if (what != 0) present.container[member] = false;
      if (what != 1) present.parity[member] = false;
    }
    if (can_decode(set.scheme, set.parity_count, present)) return present;
  }
}

PieceSettings draw_pieces(RandomChoices& choices, const SetShape& set) {
  PieceSettings pieces;
  pieces.bytes = choices.one_of<std::uint64_t>({0, 1, 7, 63, 64, 4096, 4097, 10'001, 65'536, 1U << 20U});
  pieces.depth = 1 + static_cast<std::uint32_t>(choices.below(9));
  // The smallest ones only where that does not make too many messages.
  constexpr std::uint64_t kMostPieces = 4000;
  if (pieces.bytes != 0 && *std::ranges::max_element(set.sizes) / pieces.bytes > kMostPieces) pieces.bytes = 1009;
  return pieces;
}

class ExchangeFuzz : public Exchange {
 protected:
  using File = std::pair<std::uint32_t, MemberPart>;

  struct Loss {
    PresentFiles present;
    Job job;  ///< rebuilds what is lost
  };

  Loss draw_loss(RandomChoices& choices) {
    const SetShape set = draw_set(choices);
    const PresentFiles present = draw_presence(choices, set);
    Job job{set, decode_stripes(set, present)};
    job.mapped = choices.one_in(2);
    job.pieces = draw_pieces(choices, set);
    job.ranks.resize(set.sizes.size());
    std::iota(job.ranks.begin(), job.ranks.end(), 0);
    std::ranges::shuffle(job.ranks, choices.generator());
    job.route = route_for(job.stripes, job.ranks);
    if (choices.one_in(3)) {  // on fewer processes
      const auto processes = static_cast<int>(1 + choices.below(job.ranks.size()));
      for (int& rank : job.ranks) rank %= processes;
      job.route = route_for(job.stripes, job.ranks);
    } else if (choices.one_in(4)) {
      job.route = choices.one_of({Route::chain, Route::direct});
    }
    lay_out_what_is_left(set, present);
    return {present, job};
  }

  void lay_out_what_is_left(const SetShape& set, const PresentFiles& present) {
    place_ranks(set);
    for (std::uint32_t member = 0; member < set.sizes.size(); ++member) {
      if (!present.container[member]) spoil(set, member, MemberPart::container);
      if (!present.parity[member]) continue;
      Bytes file(kHeader, std::byte{0x55});
      file.insert(file.end(), expected.parity[member].begin(), expected.parity[member].end());
      disk.write_all(path_of(member, MemberPart::parity), file);
    }
  }

  /// In a file that is there, if any of these has a byte.
  std::optional<File> flip_some_bit(RandomChoices& choices, const Loss& loss) {
    std::vector<File> files;
    for (std::uint32_t member = 0; member < loss.job.set.sizes.size(); ++member) {
      for (const MemberPart part : {MemberPart::container, MemberPart::parity}) {
        if (is_there(loss.present, member, part) && !expected.of(member, part).empty())
          files.emplace_back(member, part);
      }
    }
    if (files.empty()) return std::nullopt;
    const File file = choices.one_of(files);
    const std::uint64_t at = choices.below(expected.of(file.first, file.second).size());
    disk.flip_bit(path_of(file.first, file.second), padding_bytes(file.second) + at,
                  static_cast<unsigned>(choices.below(8)));
    return file;
  }

  /// Whether the checksums say of a member's file that it was read, or made, as it was recorded.
  bool found_good(const Loss& loss, const File& file) {
    const auto [member, part] = file;
    const Bytes& bytes = expected.of(member, part);
    const RecordedPart recorded{bytes.size(), crc32c(bytes)};
    const auto& stripes = loss.job.stripes;
    if (!is_there(loss.present, member, part)) {
      return written_crc(member, part, stripes, results[member].checksums) == recorded.crc;
    }
    const OpenFiles files = open(member, loss.job.ranks[member], false);
    fs::ByteAccess& access = part == MemberPart::container ? *files.container : *files.parity;
    return matches_recorded(member, part, recorded, stripes, results[member].checksums,
                            {&access, {}, padding_bytes(part)});
  }

  void rebuild_with_a_flipped_bit(RandomChoices& choices, const Loss& loss) {
    const auto flipped = flip_some_bit(choices, loss);
    if (!flipped) return;
    testing::InProcessWorld world(static_cast<int>(loss.job.set.sizes.size()));
    for (const auto& outcome : run(loss.job, world)) EXPECT_TRUE(outcome.returned());
    for (std::uint32_t member = 0; member < results.size(); ++member) {
      for (const MemberPart part : {MemberPart::container, MemberPart::parity}) {
        // A file that is made from a damaged one may be damaged or not: the wrong read must be noticed.
        if (!is_there(loss.present, member, part)) continue;
        EXPECT_EQ(found_good(loss, {member, part}), File(member, part) != *flipped) << path_of(member, part);
      }
    }
  }

  void rebuild_well(const Loss& loss) {
    run_well(loss.job);
    check_all_files(loss.job.set);
    for (std::uint32_t member = 0; member < results.size(); ++member) {
      for (const MemberPart part : {MemberPart::container, MemberPart::parity}) {
        EXPECT_TRUE(found_good(loss, {member, part})) << path_of(member, part);
      }
    }
  }

  /// How often members of all rounds failed, died, or timed out waiting for one that did.
  struct Counts {
    int failures = 0;
    int deaths = 0;
    int timeouts = 0;
  };

  /// One member's reads or writes fail, or it dies while it writes, or it dies or hangs at a message.
  void plan_fault(RandomChoices& choices, std::uint32_t victim, int rank, testing::InProcessWorld& world) {
    const std::uint64_t kind = choices.below(4);
    const std::uint64_t n = 1 + choices.below(8);
    if (kind == 3)
      world.stop_at(rank, choices.below(40), choices.one_of({testing::StopKind::die, testing::StopKind::stop}));
    before_exchange = [this, victim, rank, kind, n](std::uint32_t me, OpenFiles&) {
      if (me != victim) return;
      if (kind == 0) disk.fail_read(rank, disk.reads(rank) + n, EIO);
      if (kind == 1) disk.fail(rank, disk.operations(rank) + n, ENOSPC);
      if (kind == 2) disk.stop_world_after(rank, disk.operations(rank) + n, n);
    };
  }

  void rebuild_with_a_fault(RandomChoices& choices, const Loss& loss, Counts& counts) {
    const auto members = static_cast<std::uint32_t>(loss.job.set.sizes.size());
    const auto victim = static_cast<std::uint32_t>(choices.below(members));
    testing::InProcessWorld world(static_cast<int>(members));
    plan_fault(choices, victim, loss.job.ranks[victim], world);
    const auto outcomes = run(loss.job, world);
    const auto is_victim = [&](std::uint32_t member) { return loss.job.ranks[member] == loss.job.ranks[victim]; };
    const bool stopped = outcomes[static_cast<std::size_t>(loss.job.ranks[victim])].died;
    bool complete = true;
    for (std::uint32_t member = 0; member < members; ++member) {
      const auto& outcome = outcomes[static_cast<std::size_t>(loss.job.ranks[member])];
      const bool failed = outcome.returned() && results[member].failure;
      EXPECT_TRUE(is_victim(member) || (!outcome.died && !failed)) << "member " << member;
      EXPECT_TRUE(!outcome.failure || outcome.failure->code == ErrorCode::timeout) << "member " << member;
      EXPECT_TRUE(stopped || outcome.returned()) << "member " << member << " waits though all are alive";
      complete = complete && outcome.returned() && !failed;
      counts.failures += failed ? 1 : 0;
      counts.deaths += outcome.died ? 1 : 0;
      counts.timeouts += outcome.failure ? 1 : 0;
    }
    if (complete) check_all_files(loss.job.set);
    disk.restart();
  }
};

TEST_F(ExchangeFuzz, WhatIsLostComesBackAndAFlippedBitIsNoticed) {
  faults::for_each_seed({.normal = 150, .full = 6000}, "unit_redundancy_fuzz", [this](std::uint64_t seed) {
    RandomChoices choices(seed);
    const Loss loss = draw_loss(choices);
    if (choices.one_in(3)) rebuild_with_a_flipped_bit(choices, loss);
    else rebuild_well(loss);
  });
}

TEST_F(ExchangeFuzz, AMemberThatFailsSaysSoAndOneThatDiesLeavesTimeouts) {
  Counts counts;
  faults::for_each_seed({.normal = 150, .full = 6000}, "unit_redundancy_fuzz", [&](std::uint64_t seed) {
    RandomChoices choices(seed);
    const Loss loss = draw_loss(choices);
    rebuild_with_a_fault(choices, loss, counts);
  });
  if (faults::Seeds::alone()) return;
  EXPECT_GT(counts.failures, 10);
  EXPECT_GT(counts.deaths, 10);
  EXPECT_GT(counts.timeouts, 10);
}

}  // namespace
}  // namespace kedge::redundancy::exchange_fuzz_test

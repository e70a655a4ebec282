// The exchange in one process: ranks are threads, files lie on the disk that fails as planned.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness/faulty_file_system.hpp"
#include "harness/redundancy_support.hpp"
#include "harness/testing_world.hpp"
#include "redundancy/exchange.hpp"

namespace kedge::redundancy {
inline constexpr std::uint64_t kHeader = 4096;  // of a parity file, before the part
inline constexpr std::uint64_t kMiB = std::uint64_t{1} << 20U;

inline std::string path_of(std::uint32_t member, MemberPart part) {
  return (part == MemberPart::container ? "/d/container." : "/d/parity.") + std::to_string(member);
}

/// Sizes of several pieces, none equal, one empty from four members on.
inline SetShape uneven(Scheme scheme, std::size_t members, std::uint32_t parities = 1) {
  const std::vector<std::uint64_t> sizes = {3 * kMiB + 17, 2 * kMiB, kMiB + 4097, 0, 4 * kMiB + 1};
  return {scheme, {sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(members)}, parities};
}

/// One member's files, open.
struct OpenFiles {
  std::unique_ptr<fs::File> container;
  std::unique_ptr<fs::File> parity;
  std::unique_ptr<fs::Mapping> container_map;
  std::unique_ptr<fs::Mapping> parity_map;
};

class Exchange : public testing::Test {
 protected:
  struct MemberResult {
    std::optional<Failure> failure;  ///< of the process that has the member
    StripeChecksums checksums;
    std::uint64_t sent_bytes = 0;  ///< by that process
  };
  struct Job {
    SetShape set;
    std::vector<Stripe> stripes;
    bool mapped = false;
    std::vector<int> ranks = {};  ///< by position, one may have several; empty: 0, 1, ...
    Route route = Route::direct;
    PieceSettings pieces = {};
  };

  void SetUp() override {
    disk.make_directories("/d");
    faults::Volume memory;
    memory.memory_backed = true;
    disk.set_volume("/d", memory);
  }

  /// Containers with contents; parity of garbage.
  void place_ranks(const SetShape& set) {
    expected = encoded(set);
    for (std::uint32_t member = 0; member < set.sizes.size(); ++member) {
      disk.write_all(path_of(member, MemberPart::container), expected.container[member]);
      spoil(set, member, MemberPart::parity);
    }
  }
  void spoil(const SetShape& set, std::uint32_t member, MemberPart part) {
    const std::uint64_t size = part == MemberPart::container ? set.sizes[member] : kHeader + parity_bytes(set, member);
    disk.write_all(path_of(member, part), Bytes(size, std::byte{0x55}));
  }

  OpenFiles open(std::uint32_t member, int rank, bool mapped) {
    const auto system = disk.view(rank);
    OpenFiles files;
    files.container = system->open(path_of(member, MemberPart::container), fs::Access::read_write);
    files.parity = system->open(path_of(member, MemberPart::parity), fs::Access::read_write);
    if (!mapped) return files;
    if (const auto size = files.container->status().size_bytes; size > 0) {
      files.container->reserve(size);
      files.container_map = files.container->map(size);
    }
    const auto size = files.parity->status().size_bytes;
    files.parity->reserve(size);
    files.parity_map = files.parity->map(size);
    return files;
  }
  static MemberFile part(const std::unique_ptr<fs::File>& file, const std::unique_ptr<fs::Mapping>& map,
                         std::uint64_t begin) {
    return {file.get(), map ? map->bytes() : std::span<const std::byte>{}, begin};
  }

  std::vector<testing::RankOutcome> run(const Job& job, testing::InProcessWorld& world) {
    std::vector<int> ranks = job.ranks;
    if (ranks.empty()) {
      ranks.resize(job.set.sizes.size());
      std::iota(ranks.begin(), ranks.end(), 0);
    }
    results.assign(ranks.size(), {});
    disk.on_death([&](int rank) { world.mark_dead(rank); });
    return world.run_connected([&](Communicator& communicator) {
      std::vector<std::pair<std::uint32_t, OpenFiles>> files;
      for (std::uint32_t member = 0; member < ranks.size(); ++member) {
        if (ranks[member] != communicator.rank()) continue;
        files.emplace_back(member, open(member, communicator.rank(), job.mapped));
      }
      std::vector<LocalMember> local;
      for (auto& [member, own] : files) {
        if (before_exchange) before_exchange(member, own);
        local.push_back({member, part(own.container, own.container_map, 0), part(own.parity, own.parity_map, kHeader)});
      }
      const auto result =
          exchange_stripes({communicator, std::chrono::hours(1)}, ranks, local, job.stripes, {job.route, job.pieces});
      for (std::size_t i = 0; i < local.size(); ++i) {
        results[local[i].position] = {result.failure, result.member_checksums[i], result.sent_bytes};
      }
    });
  }
  void run_well(const Job& job) {
    const int processes = job.ranks.empty() ? static_cast<int>(job.set.sizes.size()) : std::ranges::max(job.ranks) + 1;
    testing::InProcessWorld world(processes);
    for (const auto& outcome : run(job, world)) {
      ASSERT_TRUE(outcome.returned()) << (outcome.failure ? outcome.failure->message : "");
    }
    for (const auto& result : results) EXPECT_FALSE(result.failure.has_value()) << result.failure->message;
    check_checksums(job);
  }

  Bytes stored(std::uint32_t member, MemberPart part) const {
    const Bytes bytes = disk.read_all(path_of(member, part));
    const auto header = static_cast<std::ptrdiff_t>(part == MemberPart::parity ? kHeader : 0);
    return {bytes.begin() + header, bytes.end()};
  }
  void check_all_files(const SetShape& set) const {
    for (std::uint32_t member = 0; member < set.sizes.size(); ++member) {
      EXPECT_TRUE(stored(member, MemberPart::container) == expected.container[member]) << "container " << member;
      EXPECT_TRUE(stored(member, MemberPart::parity) == expected.parity[member]) << "parity " << member;
    }
  }
  void check_checksums(const Job& job) {
    for (std::size_t number = 0; number < job.stripes.size(); ++number) {
      const Stripe& stripe = job.stripes[number];
      for (std::uint32_t member = 0; member < results.size(); ++member) {
        const auto crc_of = [&](std::uint32_t whose, MemberPart part, std::uint64_t offset, std::uint64_t length) {
          return crc32c(std::span(expected.of(whose, part)).subspan(offset, length));
        };
        const auto written =
            stripe.target == member ? crc_of(member, stripe.part, stripe.offset, stripe.length) : std::uint32_t{0};
        EXPECT_EQ(results[member].checksums.written.at(number), written);
        std::uint32_t read = 0;
        for (const StripeInput& input : stripe.inputs) {
          if (input.member == member) read = crc_of(member, input.part, input.offset, input.length);
        }
        EXPECT_EQ(results[member].checksums.read.at(number), read);
      }
    }
  }

  static faults::DiskOptions large_pieces() {
    faults::DiskOptions options;
    options.piece_bytes = kMiB;
    return options;
  }

  faults::FaultyDisk disk{large_pieces()};
  SetFiles expected;
  std::function<void(std::uint32_t me, OpenFiles& files)> before_exchange;
  std::vector<MemberResult> results;  ///< by position
};

}  // namespace kedge::redundancy

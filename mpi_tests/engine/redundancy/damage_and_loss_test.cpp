// Files of a commit are damaged, with and without a lost node: rebuilt where the sets allow it, never a wrong byte,
// never from two protections, and a third loss names set, members and directories.
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <tuple>

#include "base/text.hpp"
#include "harness/engine_checks.hpp"
#include "harness/set_files.hpp"

namespace kedge::faults::damage_and_loss_test {
namespace {

using format::SetFileKind;

constexpr int kRanks = 8;

/// Eight nodes of one rank, two commits kept. xor and rs: the even ranks are one set, the odd ones the other; rs may
/// lose two of each. partner: rank r and r + 4 are a pair.
struct Job : SimulatedJob {
  explicit Job(Scheme scheme = Scheme::xor_, Verify verify = Verify::all) : SimulatedJob(kRanks) {
    ranks_per_node = 1;
    options.redundancy.scheme = scheme;
    options.redundancy.set_size = 4;
    options.open.verify = verify;
    options.store.keep = 2;
    commit_steps(*this, {{"a", 1}, {"b", 2}});
  }
};

bool in_one_set(Scheme scheme, int a, int b) { return scheme == Scheme::partner ? a % 4 == b % 4 : a % 2 == b % 2; }
/// True if these two cannot be lost together.
bool too_much(Scheme scheme, int a, int b) { return scheme != Scheme::rs && in_one_set(scheme, a, b); }

void expect_step(const Opened& opened, int step) {
  ASSERT_FALSE(opened.failure) << to_string(*opened.failure);
  EXPECT_EQ(opened.step, step);
  EXPECT_EQ(opened.level, Level::protected_);
}

/// What was opened survives the loss of any one node.
void expect_protected(SimulatedJob& job, int node, int step) {
  job.disk.remove_all(store_of(node));
  expect_step(reopen(job), step);
}

enum class Corruption { removed, torn, cut, flipped };
constexpr std::array kHarms = {Corruption::removed, Corruption::torn, Corruption::cut, Corruption::flipped};

void harm(FaultyDisk& disk, const std::string& path, Corruption harm) {
  switch (harm) {
    case Corruption::removed: disk.remove_all(path); break;
    case Corruption::torn: disk.truncate_from_outside(path, 3 * format::kSuperblockBytes / 2); break;
    case Corruption::cut: disk.truncate_from_outside(path, disk.read_all(path).size() - 4096); break;
    case Corruption::flipped: disk.flip_bit(path, inside_large(disk, path)); break;
  }
}

class Damage : public testing::TestWithParam<std::tuple<Scheme, Corruption>> {};
INSTANTIATE_TEST_SUITE_P(Loss, Damage,
                         testing::Combine(testing::Values(Scheme::xor_, Scheme::partner, Scheme::rs),
                                          testing::ValuesIn(kHarms)),
                         [](const auto& one) {
                           return compose("{}_{}", to_string(std::get<0>(one.param)),
                                          static_cast<int>(std::get<1>(one.param)));
                         });

TEST_P(Damage, OfTheNewestContainerIsRebuiltAndProtectedAgain) {
  const auto [scheme, how] = GetParam();
  Job job(scheme);
  const auto committed = job.disk.snapshot();
  for (int victim = 0; victim < kRanks; ++victim) {
    SCOPED_TRACE(victim);
    job.disk.restore(committed);
    harm(job.disk, container_of(job.disk, victim, "b"), how);
    const Opened opened = reopen(job);
    expect_step(opened, 2);
    EXPECT_EQ(opened.info.source, RecoverySource::rebuilt);
    for (int rank = 0; rank < kRanks; ++rank) EXPECT_LE(container_files(job.disk, rank).size(), 3U);
    expect_protected(job, (victim + 4) % kRanks, 2);
  }
}

TEST_P(Damage, WithALostNodeIsRebuiltInAnotherSetAndStepsBackInTheSame) {
  const auto [scheme, how] = GetParam();
  Job job(scheme);
  const auto committed = job.disk.snapshot();
  for (int victim = 1; victim < kRanks; ++victim) {
    SCOPED_TRACE(victim);
    job.disk.restore(committed);
    harm(job.disk, container_of(job.disk, victim, "b"), how);
    job.disk.remove_all(store_of(0));
    const Opened opened = reopen(job);
    expect_step(opened, too_much(scheme, 0, victim) ? 1 : 2);
    EXPECT_EQ(opened.info.source, RecoverySource::rebuilt);
    expect_protected(job, victim, opened.step);
  }
}

class DamageByScheme : public testing::TestWithParam<Scheme> {};
INSTANTIATE_TEST_SUITE_P(DamageAndLoss, DamageByScheme, testing::Values(Scheme::xor_, Scheme::partner, Scheme::rs),
                         [](const auto& one) { return std::string(to_string(one.param)); });

TEST_P(DamageByScheme, OneContainerAndAnotherMembersParityAreRebuilt) {
  Job job(GetParam());
  const auto committed = job.disk.snapshot();
  for (int with_parity = 0; with_parity < kRanks; ++with_parity) {
    SCOPED_TRACE(with_parity);
    job.disk.restore(committed);
    job.disk.remove_all(container_of(job.disk, 0, "b"));
    job.disk.remove_all(set_file_of(job.disk, SetFileKind::parity, with_parity, "b"));
    const Opened opened = reopen(job);
    // xor: two members lost something. partner: the copy of 0 is what 4 keeps as parity.
    const bool lost =
        GetParam() == Scheme::partner ? with_parity == 4 : with_parity != 0 && too_much(GetParam(), 0, with_parity);
    expect_step(opened, lost ? 1 : 2);
    expect_protected(job, 4, opened.step);
  }
}

TEST_P(DamageByScheme, DamagedParityOrDescriptorsAreRebuilt) {
  for (const SetFileKind kind : {SetFileKind::parity, SetFileKind::descriptor}) {
    for (const std::uint64_t offset : {64U, 4095U, 5000U}) {
      if (kind == SetFileKind::descriptor && offset > 4095) continue;
      Job job(GetParam());
      const std::string path = set_file_of(job.disk, kind, 2, "b");
      job.disk.flip_bit(path, offset);
      const Opened opened = reopen(job);
      expect_step(opened, 2);
      EXPECT_EQ(opened.info.source, RecoverySource::in_place);
      // Rebuilt by what the damaged file was replaced by, whichever of its set is lost.
      for (const int node : {2, 6, 0}) expect_protected(job, node, 2);
    }
  }
}

TEST_P(DamageByScheme, ParityFlippedBesideALostNodeIsNotUsed) {
  for (int with_parity = 1; with_parity < kRanks; ++with_parity) {
    SCOPED_TRACE(with_parity);
    Job job(GetParam());
    job.disk.flip_bit(set_file_of(job.disk, SetFileKind::parity, with_parity, "b"), 4096 + 100);
    job.disk.remove_all(store_of(0));
    expect_step(reopen(job), too_much(GetParam(), 0, with_parity) ? 1 : 2);
  }
}

TEST_P(DamageByScheme, AllDescriptorsGoneAndContainersThereIsNoLoss) {
  for (const bool parity_too : {false, true}) {
    Job job(GetParam());
    for (int rank = 0; rank < kRanks; ++rank) {
      job.disk.remove_all(set_file_of(job.disk, SetFileKind::descriptor, rank, "b"));
      if (parity_too) job.disk.remove_all(set_file_of(job.disk, SetFileKind::parity, rank, "b"));
    }
    const Opened opened = reopen(job);
    expect_step(opened, 2);
    EXPECT_EQ(opened.info.source, RecoverySource::in_place);
    expect_protected(job, 3, 2);
  }
}

TEST_P(DamageByScheme, AllDescriptorsGoneAndANodeLostIsRebuiltByWhatParityFilesSay) {
  Job job(GetParam());
  for (int rank = 0; rank < kRanks; ++rank) {
    job.disk.remove_all(set_file_of(job.disk, SetFileKind::descriptor, rank, "b"));
  }
  expect_protected(job, 5, 2);
  expect_protected(job, 1, 2);
}

TEST_P(DamageByScheme, ACommitWithoutParityOpensWhileAllContainersAreThere) {
  Job job(GetParam());
  job.options.redundancy.every = 0;
  EXPECT_EQ(reopen(job, latest, Newer::keep, {{"c", 3}}).step, 2);
  const auto committed = job.disk.snapshot();
  const Opened opened = reopen(job);
  EXPECT_EQ(opened.step, 3);
  EXPECT_EQ(opened.level, Level::local);
  job.disk.restore(committed);
  job.options.redundancy.every = 1;
  expect_step(reopen(job), 3);  // as well protected as a fresh one
  expect_protected(job, 7, 3);
  job.disk.restore(committed);
  job.disk.remove_all(store_of(7));
  expect_step(reopen(job), 2);
}

TEST(DamageAndLoss, AWhollyLostSetIsUnrecoverableAndHarmsNothing) {
  Job job;
  const auto committed = job.disk.snapshot();
  for (const int node : {0, 2, 4, 6}) job.disk.remove_all(store_of(node));
  const Opened opened = reopen(job);
  ASSERT_TRUE(opened.failure);
  EXPECT_EQ(opened.failure->code, ErrorCode::unrecoverable);
  EXPECT_TRUE(says(opened.failure->message, {"a (generation", "b (generation", "rank 0", store_of(0)}))
      << opened.failure->message;
  for (const int node : {0, 2, 4}) job.disk.restore(committed, store_of(node));
  expect_step(reopen(job), 2);
}

/// The first protection of "b" and the one that came after it, each as the whole disk.
struct TwoProtections {
  Job job;
  FaultyDisk::Snapshot first, second;

  explicit TwoProtections(bool other_layout) {
    first = job.disk.snapshot();
    if (other_layout) job.options.redundancy.set_size = 8;
    else job.disk.remove_all(set_file_of(job.disk, SetFileKind::descriptor, 1, "b"));
    expect_step(reopen(job), 2);
    second = job.disk.snapshot();
  }
  /// The first one's files on nodes 0 to 3, the second one's on the others; containers are the same.
  void mix() {
    job.disk.restore(second);
    for (const int node : {0, 1, 2, 3}) job.disk.restore(first, store_of(node));
    const Id128 old = set_files(job.disk, SetFileKind::parity, commit_id()).front().set.protection_id;
    for (const SetFileKind kind : {SetFileKind::parity, SetFileKind::descriptor}) {
      for (const SetFile& file : set_files(job.disk, kind, commit_id())) {
        // What was retired is still sealed and would count.
        if (file.path >= store_of(4) && file.set.protection_id == old) job.disk.remove_all(file.path);
      }
    }
  }
  [[nodiscard]] Id128 commit_id() const { return superblock_of(job.disk, 0, "b").commit.id; }
};

TEST(DamageAndLoss, ParityOfTwoProtectionsOfACommitIsNeverCombined) {
  for (const bool other_layout : {false, true}) {
    TwoProtections two(other_layout);
    two.mix();
    std::map<Id128, int> parity;
    for (const SetFile& file : set_files(two.job.disk, SetFileKind::parity, two.commit_id())) {
      ++parity[file.set.protection_id];
    }
    ASSERT_EQ(parity.size(), 2U);
    for (const auto& [protection, files] : parity) ASSERT_EQ(files, 4);
    two.job.disk.remove_all(container_of(two.job.disk, 2, "b"));
    const Opened opened = reopen(two.job);
    ASSERT_FALSE(opened.failure) << to_string(*opened.failure);
    EXPECT_EQ(opened.step, 1) << "no protection of b has more than half of its parity";
    two.mix();
    expect_step(reopen(two.job), 2);  // all containers are there
    expect_protected(two.job, 2, 2);
  }
}

TEST(DamageAndLoss, OneWholeProtectionBesideHalfOfAnotherIsEnough) {
  // A crash in re-protection leaves the new one's files on some nodes and the old one's on all.
  for (const bool other_layout : {false, true}) {
    TwoProtections two(other_layout);
    two.job.disk.restore(two.second);
    for (const auto& [path, entry] : two.first) {
      const std::string name = path.substr(path.rfind('/') + 1);
      const bool set_file = name.starts_with("parity-") || name.starts_with("set-");
      if (!set_file || path < store_of(4)) continue;
      two.job.disk.write_all(path.substr(0, path.rfind('.')) + "7.kedge", entry.bytes);
    }
    expect_protected(two.job, 6, 2);
    expect_protected(two.job, 2, 2);
  }
}

/// All of the first beside a piece of the second, and a third that a crash cuts short wherever it may: until that is
/// whole, the first is what stays.
TEST(DamageAndLoss, AWholeProtectionIsNotGivenUpForAPieceOfANewerOne) {
  TwoProtections two(true);
  SimulatedJob& job = two.job;
  job.disk.restore(two.first);
  const Id128 old = set_files(job.disk, SetFileKind::parity, two.commit_id()).front().set.protection_id;
  job.disk.restore(two.second);
  const std::string last = store_of(kRanks - 1);
  std::map<std::string, std::vector<std::byte>> piece;
  for (const SetFileKind kind : {SetFileKind::parity, SetFileKind::descriptor}) {
    for (const SetFile& file : set_files(job.disk, kind, two.commit_id())) {
      if (file.path.starts_with(last) && file.set.protection_id != old) piece[file.path] = job.disk.read_all(file.path);
    }
  }
  ASSERT_EQ(piece.size(), 2U);
  job.disk.restore(two.first);
  for (const auto& [path, bytes] : piece) job.disk.write_all(path, bytes);
  const auto before = job.disk.snapshot();
  expect_step(reopen(job), 2);
  const std::uint64_t operations = job.operations[0];
  for (std::uint64_t n = 1; n <= operations; ++n) {
    SCOPED_TRACE(compose("all die in operation {}", n));
    job.disk.restore(before);
    job.kill_all_ranks = true;
    job.disk.stop_world_after(0, n, n);
    (void)job.start([](RankScope& scope) {
      Engine engine = scope.make_engine();
      (void)engine.open();
    });
    job.kill_all_ranks = false;
    expect_protected(job, 2, 2);
  }
}

TEST_P(DamageByScheme, HeadersAloneNeverLetAWrongByteThrough) {
  for (int survivor = 1; survivor < kRanks; ++survivor) {
    SCOPED_TRACE(survivor);
    Job job(GetParam(), Verify::headers);
    const std::string path = container_of(job.disk, survivor, "b");
    job.disk.flip_bit(path, inside_large(job.disk, path));
    job.disk.remove_all(store_of(0));
    if (in_one_set(GetParam(), 0, survivor)) {
      // load_step fails the test on a wrong byte
      expect_step(reopen(job), too_much(GetParam(), 0, survivor) ? 1 : 2);
      continue;
    }
    // Nobody reads it before the load does.
    expect_all_returned(job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      EXPECT_EQ(engine.open(), "b");
      EXPECT_EQ(load_step(engine, scope.rank), scope.rank == survivor ? -1 : 2);
      EXPECT_EQ(code_of([&] { engine.close(); }), ErrorCode::corrupt);
      EXPECT_EQ(engine.open(), "b") << "which can be rebuilt";
      EXPECT_EQ(load_step(engine, scope.rank), 2);
      engine.close();
    }));
  }
}

TEST_P(DamageByScheme, ABitThatOnlyTheRebuildSeesFlippedCountsAsLost) {
  for (int survivor = 1; survivor < kRanks; ++survivor) {
    if (!in_one_set(GetParam(), 0, survivor)) continue;
    for (const std::uint64_t part : {0U, 1U, 2U}) {
      SCOPED_TRACE(compose("survivor {}, part {}", survivor, part));
      Job job(GetParam());
      const std::string path = container_of(job.disk, survivor, "b");
      const std::uint64_t third = job.disk.read_all(path).size() / 3;
      job.disk.flip_bit_when_opened(path, 20'000 + part * third);
      job.disk.remove_all(store_of(0));
      expect_step(reopen(job), too_much(GetParam(), 0, survivor) ? 1 : 2);
      EXPECT_TRUE(job.logged("could not be recovered"));
    }
  }
}

/// One lost node leaves parity that the rebuild has no need to read: it is checked all the same.
TEST(DamageAndLoss, ParityThatARebuildDoesNotNeedIsMendedToo) {
  for (int with_parity = 2; with_parity < kRanks; with_parity += 2) {
    for (const std::uint64_t segment : {0U, 1U}) {
      SCOPED_TRACE(compose("parity {}, segment {}", with_parity, segment));
      Job job(Scheme::rs);
      const std::string path = set_file_of(job.disk, SetFileKind::parity, with_parity, "b");
      const std::uint64_t parity_bytes = job.disk.read_all(path).size() - format::kSuperblockBytes;
      job.disk.flip_bit(path, format::kSuperblockBytes + 100 + segment * parity_bytes / 2);
      job.disk.remove_all(store_of(0));
      expect_step(reopen(job), 2);
      const auto mended = job.disk.snapshot();
      for (const int other : {0, 2, 4, 6}) {
        for (const int another : {0, 2, 4, 6}) {
          if (another <= other) continue;
          job.disk.restore(mended);
          job.disk.remove_all(store_of(other));
          expect_protected(job, another, 2);
        }
      }
    }
  }
}

TEST(DamageAndLoss, AThirdLossIsTooMuchForTwoParities) {
  Job job(Scheme::rs);
  const auto committed = job.disk.snapshot();
  for (const Corruption how : kHarms) {
    job.disk.restore(committed);
    for (const int node : {0, 4}) job.disk.remove_all(store_of(node));
    harm(job.disk, container_of(job.disk, 6, "b"), how);
    expect_step(reopen(job), 1);
    job.disk.restore(committed);
    for (const int node : {0, 4, 6}) job.disk.remove_all(store_of(node));
    const Opened opened = reopen(job);
    ASSERT_TRUE(opened.failure);
    EXPECT_EQ(opened.failure->code, ErrorCode::unrecoverable);
    EXPECT_TRUE(says(opened.failure->message,
                     {"rank 0", "tolerates the loss of 2 members, but lost 3", store_of(0), store_of(4), store_of(6)}))
        << opened.failure->message;
  }
}

/// As well protected as a fresh one: with as many parities as this start asks for.
TEST(DamageAndLoss, AStartThatAsksForMoreParitiesProtectsWhatItOpensWithThem) {
  Job job(Scheme::rs);
  job.options.redundancy.parity = 3;
  expect_step(reopen(job), 2);
  for (const int node : {0, 2, 6}) job.disk.remove_all(store_of(node));
  expect_step(reopen(job), 2);
}

}  // namespace
}  // namespace kedge::faults::damage_and_loss_test

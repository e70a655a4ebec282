// What a rebuild, or whoever loads, reads and checks itself need not be verified before, unless carrying out the orders
// overwrites files that could still be offered if it fails.
#include "recovery/deferred_reads.hpp"

#include <gmock/gmock.h>

#include <functional>
#include <memory>
#include <vector>

#include "harness/testing_world.hpp"
#include "unit/store/store_fixture.hpp"

namespace kedge::faults::read_later_test {
namespace {

using recovery::Candidate;
using recovery::MoveOrder;
using recovery::Orders;
using recovery::SetOrder;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr int kMine = 0;
constexpr std::uint8_t kChosen = 5;
constexpr std::uint8_t kOlder = 3;

class ReadLaterBy : public StoreFiles {
 protected:
  /// Member 1's container is rebuilt; this rank has all of its own and writes nothing.
  static Orders orders() {
    SetOrder set;
    set.set.commit_id = id_of(kChosen);
    set.set.protection_id = id_of(1);
    set.set.members = {{rank_of(kMine), 0, 10}, {rank_of(1), 0, 10}};
    set.present.container = {true, false};
    set.present.parity = {true, true};
    set.rebuild = true;
    Orders orders;
    orders.sets.push_back(set);
    return orders;
  }
  static MoveOrder move_of(FileKind kind, int to) {
    MoveOrder move;
    move.kind = kind;
    move.to = to;
    return move;
  }

  /// Of the chosen commit, where the store has its descriptor and a retired file of kind `retired`.
  std::vector<FileKey> inputs(FileKind retired, const std::function<void(Orders&)>& change, bool has_descriptor = true,
                              std::uint32_t rebuilt = 1, bool loads = false) {
    disk.remove_all("/store");
    disk.make_directories("/store");
    const auto store = open_store(kMine);
    if (has_descriptor) put(*store, FileKind::descriptor, kMine, kChosen);
    put(*store, retired, kMine, kOlder);
    store->retirement.retire_all_but(only({key_of(FileKind::descriptor, kChosen)}));
    Orders changed = orders();
    change(changed);
    Candidate chosen;
    chosen.commit.id = id_of(kChosen);
    chosen.commit.world_size = 1;
    chosen.rebuilt = rebuilt;
    std::vector<FileKey> found;
    testing::InProcessWorld world(1);
    (void)world.run_connected([&](Communicator& communicator) {
      found = recovery::plan_deferred_reads(comm::Group(communicator, comm::Group::Seconds(60)), *store, chosen,
                                            changed, loads)
                  .files;
    });
    return found;
  }
};

TEST_P(ReadLaterBy, AreTheContainerAndTheSetFilesIfNothingThatCouldBeOfferedIsOverwritten) {
  for (const FileKind retired : kAllKinds) {
    EXPECT_THAT(inputs(retired, [](Orders&) {}),
                ElementsAre(key_of(FileKind::container, kChosen), key_of(FileKind::parity, kChosen)));
  }
  const auto other_kind = [](Orders& orders) { orders.sets[0].present.parity[kMine] = false; };
  EXPECT_FALSE(inputs(FileKind::container, other_kind).empty());
  const auto other_rank = [](Orders& orders) { orders.moves.push_back(move_of(FileKind::container, kMine + 1)); };
  EXPECT_FALSE(inputs(FileKind::container, other_rank).empty());
}

TEST_P(ReadLaterBy, AreVerifiedFirstIfSomethingThatCouldBeOfferedIsOverwritten) {
  for (const FileKind kind : kAllKinds) {
    EXPECT_THAT(inputs(kind, [&](Orders& orders) { orders.moves.push_back(move_of(kind, kMine)); }), IsEmpty());
  }
  EXPECT_THAT(inputs(FileKind::container, [](Orders& orders) { orders.sets[0].present.container[kMine] = false; }),
              IsEmpty());
  EXPECT_THAT(inputs(FileKind::parity, [](Orders& orders) { orders.sets[0].present.parity[kMine] = false; }),
              IsEmpty());
  EXPECT_THAT(inputs(
                  FileKind::descriptor, [](Orders&) {}, /*has_descriptor=*/false),
              IsEmpty());
  EXPECT_THAT(inputs(FileKind::container, [](Orders& orders) { orders.fetches.emplace_back(); }), IsEmpty());
}

TEST_P(ReadLaterBy, ThereAreNoneWhereNothingIsRebuilt) {
  EXPECT_THAT(inputs(
                  FileKind::parity, [](Orders&) {}, true, 0),
              IsEmpty());
  const auto no_rebuild = [](Orders& orders) { orders.sets[0].rebuild = false; };
  EXPECT_THAT(inputs(FileKind::parity, no_rebuild), IsEmpty());
}

TEST_P(ReadLaterBy, WhoeverLoadsReadsTheContainerUnlessSomethingThatCouldBeOfferedIsOverwritten) {
  const auto nothing = [](Orders&) {};
  EXPECT_THAT(inputs(FileKind::container, nothing, true, 0, true),
              ElementsAre(key_of(FileKind::container, kChosen), key_of(FileKind::parity, kChosen)));
  const auto no_rebuild = [](Orders& orders) { orders.sets[0].rebuild = false; };
  EXPECT_THAT(inputs(FileKind::container, no_rebuild, true, 0, true),
              ElementsAre(key_of(FileKind::container, kChosen)));
  const auto fetches = [](Orders& orders) { orders.fetches.emplace_back(); };
  EXPECT_THAT(inputs(FileKind::container, fetches, true, 0, true), IsEmpty());
  EXPECT_FALSE(inputs(FileKind::parity, fetches, true, 0, true).empty());
}

INSTANTIATE_TEST_SUITE_P(Memory, ReadLaterBy, testing::Values(true));

}  // namespace
}  // namespace kedge::faults::read_later_test

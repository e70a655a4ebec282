// Markers that commits exist: those of another run do not count, and they go when the commits went.
#include "persist/prefix_markers.hpp"

#include <gmock/gmock.h>

#include "unit/persist/records_fixture.hpp"

namespace kedge::faults::prefix_markers_test {
namespace {

using persist::PrefixMarkers;
using persist::RunStart;
using persist::testing::id_of;
using persist::testing::kSeeds;

const Id128 kRun = id_of(3);

using PrefixMarkersTest = persist::testing::RecordsTest;

TEST_F(PrefixMarkersTest, NotesOfTheRunThatWasHereBeforeDoNotCountAndGo) {
  RunStart before = start();
  before.mark_begun({id_of(3)});
  PrefixMarkers(before).mark_first_commit(kRun, id_of(1));
  PrefixMarkers(before).mark_first_manifest(kRun, id_of(1));
  RunStart mine = start();
  EXPECT_TRUE(PrefixMarkers(mine).has_first_commit(id_of(3)) && PrefixMarkers(mine).has_first_manifest(id_of(3)));
  EXPECT_TRUE(PrefixMarkers(mine).has_first_commit({}) && PrefixMarkers(mine).has_first_manifest({}));
  EXPECT_FALSE(PrefixMarkers(mine).has_first_commit(id_of(4)) || PrefixMarkers(mine).has_first_manifest(id_of(4)));
  PrefixMarkers(mine).remove_markers_of_others(id_of(3));
  EXPECT_TRUE(persist::has_checkpoints(*system, mine.directory().path()));
  PrefixMarkers(mine).remove_markers_of_others(id_of(4));
  EXPECT_FALSE(persist::has_checkpoints(*system, mine.directory().path()));
  plant("first-commit", "half");
  EXPECT_TRUE(PrefixMarkers(mine).has_first_commit(id_of(4))) << "whose it is cannot be read: it may be this run's";
}

TEST_F(PrefixMarkersTest, CommitsThatWereForgottenStayForgotten) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    RunStart mine = begun();
    PrefixMarkers(mine).mark_first_commit(kRun, id_of(1));
    PrefixMarkers(mine).remove_first_commit();
    disk.restart(Crash::power, seed);
    EXPECT_FALSE(PrefixMarkers(next_start()).has_first_commit({})) << "seed " << seed;
  }
}

}  // namespace
}  // namespace kedge::faults::prefix_markers_test

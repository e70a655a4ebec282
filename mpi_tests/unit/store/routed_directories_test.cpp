// Directories of routed files in a rank's store: made, counted towards the quota, and removed after a crash.
#include <gtest/gtest.h>

#include "unit/store/store_fixture.hpp"

namespace kedge::faults {
namespace {

class RoutedDirectoriesTest : public StoreFiles {};

INSTANTIATE_TEST_SUITE_P(Kinds, RoutedDirectoriesTest, testing::Bool(),
                         [](const auto& kind) { return kind.param ? "memory" : "block"; });

TEST_P(RoutedDirectoriesTest, EachIsNewAlsoBesideThoseOfACrashedStart) {
  EXPECT_EQ(open_store(1)->routed_directories.make_directory(), "/store/routed-1.0");
  const auto own = open_store(1);
  EXPECT_EQ(own->routed_directories.make_directory(), "/store/routed-1.1");
  EXPECT_EQ(own->routed_directories.make_directory(), "/store/routed-1.2");
}

TEST_P(RoutedDirectoriesTest, FilesOfAllRanksInThemCountTowardsTheQuota) {
  const auto own = open_store(1);
  disk.write_all(own->routed_directories.make_directory() + "/mine", std::vector<std::byte>(8192));
  const std::uint64_t with_own = own->node_bytes();
  EXPECT_GE(with_own, 8192U);
  disk.write_all(open_store(2)->routed_directories.make_directory() + "/of-another", std::vector<std::byte>(8192));
  EXPECT_EQ(own->node_bytes(), 2 * with_own);
}

TEST_P(RoutedDirectoriesTest, ASweepRemovesThoseOfThisRankAlone) {
  for (const int rank : {1, 11, 2})
    disk.write_all(open_store(rank)->routed_directories.make_directory() + "/a", std::vector<std::byte>(10));
  const auto own = open_store(1);
  (void)put(*own, FileKind::container, 1, 1);
  own->remove_leftovers();
  EXPECT_FALSE(exists("routed-1.0/a"));
  EXPECT_TRUE(exists("routed-11.0/a"));
  EXPECT_TRUE(exists("routed-2.0/a"));
  EXPECT_TRUE(exists("rank-1.0.h5"));
}

}  // namespace
}  // namespace kedge::faults

// Where stores lie on a node, and whose they are: each place has its own, and a moved prefix keeps them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "harness/faulty_file_system.hpp"
#include "harness/faulty_fixture.hpp"
#include "store/location.hpp"
#include "store/store_record_files.hpp"

namespace kedge::faults::location_test {
namespace {

using testing::HasSubstr;

store::StoreOwner owner_of(const std::string& prefix, std::uint8_t id) {
  store::StoreOwner owner{"r", {}, {}, prefix};
  owner.run_id.bytes[0] = id;
  owner.prefix_id.bytes[0] = id;
  return owner;
}

TEST(Location, ReplacesTheNode) {
  EXPECT_EQ(store::expand_node("/local/{node}/x-{node}", "n7"), "/local/n7/x-n7");
  EXPECT_EQ(store::expand_node("/local", "n7"), "/local");
}

TEST(Location, TakesMemoryFirstThenTheFirstThatExists) {
  FaultyDisk disk;
  Volume memory;
  memory.memory_backed = true;
  disk.set_volume("/memory", memory);
  disk.make_directories("/memory");
  disk.make_directories("/disk");
  const auto system = disk.view(0);
  const auto locate = [&](const std::vector<std::string>& candidates) {
    const store::LocationOptions location_options{"", "n", candidates};
    return store::find_or_make_store(*system, store::choose_root(*system, location_options).directory, location_options,
                                     owner_of("/prefix", 1));
  };
  const auto best = locate({"/missing", "/disk", "/memory"});
  EXPECT_TRUE(best.directory.starts_with("/memory/kedge-1000-r-")) << best.directory;
  EXPECT_TRUE(best.memory_backed);
  const auto fallback = locate({"/missing", "/disk"});
  EXPECT_TRUE(fallback.directory.starts_with("/disk/kedge-1000-r-")) << fallback.directory;
  EXPECT_FALSE(fallback.memory_backed);
  EXPECT_THROW((void)locate({"/missing"}), Error);
}

/// As in a container, or where an administrator closed it.
TEST(Location, MemoryThatIsSmallOrClosedIsPassedOver) {
  FaultyDisk disk;
  Volume volume;
  volume.memory_backed = true;
  volume.capacity_bytes = std::uint64_t{64} << 20U;
  volume.machine_bytes = std::uint64_t{64} << 30U;
  disk.set_volume("/small", volume);
  volume.capacity_bytes = std::uint64_t{32} << 30U;
  disk.set_volume("/memory", volume);
  volume.write_errno = EROFS;
  disk.set_volume("/closed", volume);
  for (const std::string one : {"/small", "/memory", "/closed", "/disk"}) disk.make_directories(one);
  const auto choose = [&](const std::vector<std::string>& candidates) {
    return store::choose_root(*disk.view(0), {"", "n", candidates});
  };
  EXPECT_EQ(choose({"/closed", "/small", "/disk", "/memory"}).directory, "/memory");
  EXPECT_EQ(choose({"/closed", "/small", "/disk"}).directory, "/disk");
  EXPECT_EQ(choose({"/small", "/disk"}).warning, "");
  const store::StoreRoot small = choose({"/closed", "/small"});
  EXPECT_EQ(small.directory, "/small");
  EXPECT_NE(small.warning.find("KEDGE_STORE_PATH"), std::string::npos) << small.warning;
  EXPECT_THROW((void)choose({"/closed"}), Error);
  // But not where this run's store lies.
  const store::LocationOptions all{"", "n", {"/small", "/memory"}};
  const auto place = owner_of("/prefix", 1).prefix_id;
  const std::string own = "/small/" + store::directory_name(1000, all, "r", place);
  disk.make_directories(own);
  EXPECT_EQ(store::choose_root(*disk.view(0), all, "r", place).directory, "/small");
  EXPECT_EQ(store::choose_root(*disk.view(0), all, "r", owner_of("/prefix", 2).prefix_id).directory, "/memory");
  disk.remove_all(own);
  EXPECT_EQ(disk.view(0)->list("/small"), std::vector<std::string>()) << "left behind";
}

TEST(Location, EachPlaceHasADirectoryOfItsOwn) {
  const store::LocationOptions here{"/d", "n", {}};
  const auto name = [&](std::uint8_t id, std::uint32_t number = 1) {
    return store::directory_name(1000, here, "r", owner_of("/prefix", id).prefix_id, number);
  };
  EXPECT_EQ(name(1), name(1));
  EXPECT_NE(name(1), name(2));
  EXPECT_NE(name(1), name(1, 2));
  EXPECT_TRUE(store::is_directory_of(name(1, 2), 1000, here, "r", owner_of("/prefix", 1).prefix_id));
  EXPECT_FALSE(store::is_directory_of(name(2), 1000, here, "r", owner_of("/prefix", 1).prefix_id));
  const auto may_be = [&](const std::string& one, std::uint32_t user, std::string_view run) {
    return store::may_be_of_run(one, user, here, run);
  };
  EXPECT_TRUE(may_be(name(1), 1000, "r"));
  EXPECT_FALSE(may_be(name(1), 1000, "s"));
  EXPECT_FALSE(may_be(name(1), 100, "r"));
  EXPECT_FALSE(may_be("kedge-1000-r-fine-01234567", 1000, "r"));
  EXPECT_FALSE(may_be("kedge-1000-r-0123456g", 1000, "r"));
  EXPECT_FALSE(may_be(name(1) + "@n", 1000, "r")) << "another node's";
}

TEST(Location, AMovedPrefixKeepsItsDirectoryAndWhatTookItAlongKeepsItToo) {
  FaultyDisk disk;
  disk.make_directories("/d");
  const auto system = disk.view(0);
  const store::LocationOptions here{"/d", "n", {}};
  const auto at = [&](const store::StoreOwner& owner) {
    const store::StoreLocation location = store::find_or_make_store(*system, "/d", here, owner);
    store::StoreRecordFiles(system, location, {0}).write_owner({owner.run_id, owner.prefix_id, owner.prefix});
    return location.directory;
  };
  const auto before = at(owner_of("/old", 1));
  store::StoreOwner moved = owner_of("/new", 1);
  moved.former_prefixes = {"/between", "/old"};
  EXPECT_EQ(at(moved), before);
  // A copy that came from the old place as well.
  store::StoreOwner copy = owner_of("/copy", 1);
  copy.former_prefixes = {"/old"};
  EXPECT_NE(at(copy), before);
  EXPECT_EQ(at(copy), at(copy));
  EXPECT_EQ(at(moved), before);
  EXPECT_EQ(store::find_store(*system, "/d", here, moved), before);
  EXPECT_EQ(store::find_store(*system, "/d", here, owner_of("/old", 5)), std::nullopt);
}

/// The name is made of 32 bits of the place, and a record may have been copied.
TEST(Location, ADirectoryWhoseRecordNamesAnotherRunOrPlaceIsLeftToThat) {
  FaultyDisk disk;
  disk.make_directories("/d", 0755);
  const auto system = disk.view(0);
  const store::LocationOptions here{"/d", "n", {}};
  const store::StoreOwner mine = owner_of("/prefix", 1);
  const store::StoreOwner other = owner_of("/prefix", 2);
  const auto first = store::find_or_make_store(*system, "/d", here, mine);
  for (const store::StoreRecord& record : {store::StoreRecord{other.run_id, mine.prefix_id, "/prefix"},
                                           store::StoreRecord{mine.run_id, other.prefix_id, "/prefix"}}) {
    store::StoreRecordFiles(system, first, {0}).write_owner(record);
    EXPECT_NE(store::find_or_make_store(*system, "/d", here, mine).directory, first.directory);
  }
  // What others can write says nothing: it is refused, whatever its record says.
  auto status = disk.snapshot().at(first.directory).status;
  status.mode = 0755;
  disk.plant(first.directory, status);
  EXPECT_THROW((void)store::find_or_make_store(*system, "/d", here, mine), Error);
}

/// Then nothing tells whether a copy took it along.
TEST(Location, ARecordThatCannotBeReadIsNoneUnlessThePrefixMoved) {
  FaultyDisk disk;
  disk.make_directories("/d");
  const auto system = disk.view(0);
  const store::LocationOptions here{"/d", "n", {}};
  store::StoreOwner owner = owner_of("/prefix", 1);
  const auto location = store::find_or_make_store(*system, "/d", here, owner);
  store::StoreRecordFiles(system, location, {0}).write_owner({owner.run_id, owner.prefix_id, owner.prefix});
  disk.refuse_open(location.directory + "/run");
  EXPECT_EQ(store::find_or_make_store(*system, "/d", here, owner).directory, location.directory);
  owner.former_prefixes = {"/old"};
  const auto failure = failure_of([&] { (void)store::find_or_make_store(*system, "/d", here, owner); });
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->code, ErrorCode::io);
  EXPECT_EQ(failure->path, location.directory + "/run");
  EXPECT_THAT(failure->message, HasSubstr("remove it if the prefix was never copied"));
  disk.remove_all(location.directory + "/run");
  EXPECT_EQ(store::find_or_make_store(*system, "/d", here, owner).directory, location.directory);
}

TEST(StoresOfName, AreThoseThatSayThatTheyAreAndAreCalledSo) {
  FaultyDisk disk;
  disk.make_directories("/d", 0755);
  const auto system = disk.view(0);
  const store::LocationOptions here{"/d", "n", {}};
  const auto make = [&](const store::StoreOwner& owner) {
    const auto location = store::find_or_make_store(*system, "/d", here, owner);
    store::StoreRecordFiles records(system, location, {0});
    records.write_owner({owner.run_id, owner.prefix_id, owner.prefix});
    return location.directory;
  };
  const auto one = owner_of("/prefix", 1);
  const auto directory = make(one);
  store::StoreRecordFiles(system, {directory, true}, {0}).write_commit_marker(one.run_id);
  const auto two = owner_of("/other path", 2);
  (void)make(two);
  (void)make({"r-2", one.run_id, one.prefix_id, "/prefix"});  // begins alike
  // A copy under another name, one that says nothing, one that others can write, another user's.
  disk.make_directories("/d/kedge-1000-r-00000000", 0700);
  disk.write_all("/d/kedge-1000-r-00000000/run", disk.read_all(directory + "/run"));
  disk.make_directories("/d/kedge-1000-r-00000001", 0700);
  const auto open = make(owner_of("/open", 3));
  auto status = disk.snapshot().at(open).status;
  status.mode = 0755;
  disk.plant(open, status);
  const auto foreign = make(owner_of("/foreign", 4));
  status = disk.snapshot().at(foreign).status;
  status.owner = 4242;
  disk.plant(foreign, status);
  auto found = store::find_stores_of_run(*system, "/d", here, "r");
  ASSERT_EQ(found.size(), 2U);
  if (found[0].record.prefix != "/prefix") std::swap(found[0], found[1]);
  EXPECT_EQ(found[0].directory, directory);
  EXPECT_EQ(found[0].record, (store::StoreRecord{one.run_id, one.prefix_id, "/prefix"}));
  EXPECT_TRUE(found[0].has_commits);
  EXPECT_EQ(found[1].record, (store::StoreRecord{two.run_id, two.prefix_id, "/other path"}));
  EXPECT_FALSE(found[1].has_commits);
  // One that cannot be read may be the one that is looked for.
  for (const std::string name : {"/committed", "/run"}) {
    disk.refuse_open(directory + name);
    const auto failure = failure_of([&] { (void)store::find_stores_of_run(*system, "/d", here, "r"); });
    ASSERT_TRUE(failure) << name;
    EXPECT_EQ(failure->path, directory + name);
    EXPECT_THAT(failure->message, HasSubstr("KEDGE_START=fresh"));
    disk.remove_all(directory + name);
  }
  EXPECT_EQ(store::find_stores_of_run(*system, "/d", here, "r").size(), 1U);
}

}  // namespace
}  // namespace kedge::faults::location_test

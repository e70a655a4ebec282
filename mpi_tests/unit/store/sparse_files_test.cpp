// Real sparse files of 1 TiB under the names of a store's: nothing reads or takes what their headers do not vouch for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "base/attempt.hpp"
#include "base/text.hpp"
#include "store_fixture.hpp"

namespace kedge::faults::sparse_files_test {
namespace {

constexpr std::uint64_t kHuge = std::uint64_t{1} << 40U;

/// A store in memory or one that is treated as a disk, both on a small filesystem of their own: whoever fills holes
/// fails there, and not the machine.
class SparseFiles : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "kedge-sparse-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    directory = name;
    is_mounted = ::mount("tmpfs", directory.c_str(), "tmpfs", 0, "size=64m,mode=0700") == 0;
    if (!is_mounted) GTEST_SKIP() << "a tmpfs cannot be mounted here: " << std::generic_category().message(errno);
  }
  void TearDown() override {
    if (is_mounted) ::umount2(directory.c_str(), MNT_DETACH);
    std::filesystem::remove_all(directory);
  }

  [[nodiscard]] std::string path(const std::string& name) const { return fs::join(directory, name); }
  void make_huge(const std::string& name, std::uint64_t size_bytes = kHuge) const {
    std::ofstream(path(name), std::ios::app).close();
    ASSERT_EQ(::truncate(path(name).c_str(), static_cast<off_t>(size_bytes)), 0);
  }
  [[nodiscard]] std::unique_ptr<store::NodeStore> open_store(int rank) {
    return std::make_unique<store::NodeStore>(fs::posix_file_system(), Options::Store{},
                                              store::StoreLocation{directory, GetParam()}, rank_of(rank),
                                              std::vector{rank});
  }
  /// A container of rank 0 and commit 1.
  void put_container(store::NodeStore& into) {
    store::StoreFile& file = into.new_files.begin_file({FileKind::container, 0});
    format::ContainerWriter writer(file, nullptr);
    const std::vector<std::byte> values(5000, std::byte{1});
    writer.add({"values", DataType::opaque, Shape{values.size()}, {}, false}, values);
    static_cast<void>(writer.finish());
    format::Superblock identity;
    identity.commit.run_id = run_id;
    identity.commit.id = id_of(1);
    identity.commit.generation = 1;
    identity.commit.world_size = 2;
    identity.commit.tag = "t";
    writer.seal(identity);
    file.flush(false);
    into.new_files.mark_sealed(file, key_of(FileKind::container, 1), 1);
  }
  [[nodiscard]] std::uint64_t stored_bytes() const {
    std::uint64_t bytes = 0;
    for (const auto& entry : std::filesystem::directory_iterator(directory)) {
      struct stat info {};
      EXPECT_EQ(::stat(entry.path().c_str(), &info), 0);
      bytes += static_cast<std::uint64_t>(info.st_blocks) * 512;
    }
    return bytes;
  }

  std::string directory;
  bool is_mounted = false;
  Id128 run_id = id_of(0x77);
};

TEST_P(SparseFiles, OneWithoutAHeaderIsDamageAndGivesWay) {
  for (const char* name : {"rank-0.0.h5", "rank-0.7.h5", "rank-1.0.h5", "parity-0.0.kedge", "set-0.0.kedge"})
    make_huge(name);
  const auto own = open_store(0);
  for (const auto& held : own->files.scan(run_id, Verify::all)) EXPECT_FALSE(held.intact) << held.path;
  EXPECT_LT(own->node_bytes(), 1U << 20U) << "holes take nothing of a quota";
  put_container(*own);
  EXPECT_LT(stored_bytes(), 8U << 20U);
  const auto found = open_store(0)->files.scan(run_id, Verify::all);
  EXPECT_EQ(std::ranges::count_if(found, [](const auto& held) { return held.intact; }), 1);
}

TEST_P(SparseFiles, OneWithTheHeaderOfASmallerOneIsDamage) {
  put_container(*open_store(0));
  make_huge("rank-0.0.h5");
  const auto own = open_store(0);
  const auto found = own->files.scan(run_id, Verify::all);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_FALSE(found.front().intact);
  EXPECT_THAT(own->files.verify(run_id, id_of(1)), testing::IsEmpty());
  put_container(*own);
  EXPECT_LT(stored_bytes(), 8U << 20U);
}

TEST_P(SparseFiles, OneThatWouldFitIsNotFilledEither) {
  make_huge("rank-0.0.h5", std::uint64_t{32} << 20U);
  const auto own = open_store(0);
  static_cast<void>(own->new_files.begin_file({FileKind::container, 0}));
  EXPECT_LT(stored_bytes(), 8U << 20U);
}

TEST_P(SparseFiles, OneThatReplacesASealedFileBetweenTwoLooksIsNotFilled) {
  const auto own = open_store(0);
  put_container(*open_store(0));
  ASSERT_TRUE(own->files.scan(run_id, Verify::headers).front().intact);
  make_huge("rank-0.0.h5");
  const auto found = own->files.verify(run_id, id_of(1));
  ASSERT_EQ(found.size(), 1U);
  EXPECT_FALSE(found.front().intact);
  EXPECT_LT(stored_bytes(), 8U << 20U);
}

INSTANTIATE_TEST_SUITE_P(Storage, SparseFiles, testing::Bool(),
                         [](const auto& tested) { return tested.param ? "memory" : "block"; });

}  // namespace
}  // namespace kedge::faults::sparse_files_test

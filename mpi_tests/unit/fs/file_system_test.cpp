// The contract of fs::FileSystem, held against the real one (on memory and on disk) and the faulty one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <functional>
#include <random>

#include "checksum/crc32c.hpp"
#include "fs/file_system.hpp"
#include "harness/faulty_file_system.hpp"
#include "kedge/error.hpp"

namespace kedge::fs::file_system_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Kind = FileStatus::Kind;

std::vector<std::byte> random_bytes(std::size_t size, std::uint32_t seed) {
  std::mt19937 engine(seed);
  std::vector<std::byte> bytes(size);
  for (auto& byte : bytes) byte = static_cast<std::byte>(engine());
  return bytes;
}

/// Runs `action`; the code it threw, or nothing.
std::optional<ErrorCode> code_thrown(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.code();
  }
  return std::nullopt;
}

/// One file system under test: a directory in it, and what only outsiders do.
class Ground {
 public:
  Ground() = default;
  Ground(const Ground&) = delete;
  Ground& operator=(const Ground&) = delete;
  virtual ~Ground() = default;
  virtual FileSystem& system() = 0;
  virtual std::string directory() const = 0;
  virtual void plant_link(const std::string& path, const std::string& target) = 0;
  virtual void truncate(const std::string& path, std::uint64_t size_bytes) = 0;
};

class PosixGround final : public Ground {
 public:
  explicit PosixGround(const std::string& parent) {
    std::string name = join(parent, "kedge-fs-test-XXXXXX");
    if (::mkdtemp(name.data()) != nullptr) directory_ = name;
  }
  ~PosixGround() override {
    std::error_code ignored;
    if (!directory_.empty()) std::filesystem::remove_all(directory_, ignored);
  }
  FileSystem& system() override { return *system_; }
  std::string directory() const override { return directory_; }
  void plant_link(const std::string& path, const std::string& target) override {
    std::filesystem::create_symlink(target, path);
  }
  void truncate(const std::string& path, std::uint64_t size_bytes) override {
    std::filesystem::resize_file(path, size_bytes);
  }

 private:
  std::string directory_;
  std::shared_ptr<FileSystem> system_ = posix_file_system();
};

class FaultyGround final : public Ground {
 public:
  FaultyGround() { disk_.make_directories(directory()); }
  FileSystem& system() override { return *system_; }
  std::string directory() const override { return "/scratch/test"; }
  void plant_link(const std::string& path, const std::string& target) override { disk_.plant_link(path, target); }
  void truncate(const std::string& path, std::uint64_t size_bytes) override {
    disk_.truncate_from_outside(path, size_bytes);
  }

 private:
  faults::FaultyDisk disk_;
  std::shared_ptr<FileSystem> system_ = disk_.view(0);
};

class Contract : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const std::string kind = GetParam();
    if (kind == "faulty") ground_ = std::make_unique<FaultyGround>();
    else ground_ = std::make_unique<PosixGround>(kind == "memory" ? "/dev/shm" : testing::TempDir());
    if (ground_->directory().empty()) GTEST_SKIP() << "no temporary directory can be made there";
  }
  FileSystem& system() { return ground_->system(); }
  std::string path(std::string_view name) const { return join(ground_->directory(), name); }
  std::unique_ptr<File> with_bytes(std::string_view name, std::span<const std::byte> bytes) {
    auto file = system().create(path(name));
    file->write_with_crc(0, bytes, 0);
    return file;
  }
  std::unique_ptr<Ground> ground_;
};

INSTANTIATE_TEST_SUITE_P(Fs, Contract, testing::Values("memory", "disk", "faulty"),
                         [](const auto& tested) { return std::string(tested.param); });

TEST_P(Contract, CreateIsExclusiveAndPrivate) {
  const auto file = system().create(path("a"));
  ASSERT_NE(file, nullptr);
  EXPECT_EQ(file->path(), path("a"));
  EXPECT_EQ(system().create(path("a")), nullptr);
  const auto status = file->status();
  EXPECT_EQ(status.kind, Kind::file);
  EXPECT_EQ(status.mode, 0600U);
  EXPECT_EQ(status.owner, system().user());
  EXPECT_EQ(status.links, 1U);
}

TEST_P(Contract, OpenRefusesLinksDirectoriesAndMissingNames) {
  with_bytes("real", random_bytes(10, 1));
  ground_->plant_link(path("link"), path("real"));
  ground_->plant_link(path("dangling"), path("nowhere"));
  system().make_directory(path("directory"));
  for (const Access access : {Access::read, Access::read_write}) {
    EXPECT_EQ(code_thrown([&] { (void)system().open(path("link"), access); }), ErrorCode::io);
    EXPECT_EQ(code_thrown([&] { (void)system().open(path("directory"), access); }), ErrorCode::io);
    EXPECT_EQ(code_thrown([&] { (void)system().open(path("none"), access); }), ErrorCode::not_found);
  }
  EXPECT_EQ(code_thrown([&] { (void)system().create(path("link")); }), ErrorCode::io);
  EXPECT_EQ(code_thrown([&] { (void)system().create(path("dangling")); }), ErrorCode::io);
  EXPECT_FALSE(system().status(path("nowhere")));
  EXPECT_EQ(system().status(path("link")).value().kind, Kind::link);
  EXPECT_EQ(code_thrown([&] { (void)system().create(path("none/deep")); }), ErrorCode::not_found);
  EXPECT_EQ(code_thrown([&] { system().make_directory(path("link")); }), ErrorCode::io);
}

TEST_P(Contract, TheMessageOfARefusedLinkSaysSo) {
  ground_->plant_link(path("link"), path("real"));
  try {
    (void)system().open(path("link"), Access::read);
    FAIL() << "the link was followed";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("symbolic link"));
    EXPECT_EQ(error.failure().path, path("link"));
    EXPECT_NE(error.failure().system_errno, 0);
  }
}

TEST_P(Contract, CopiesAndChecksumsContinue) {
  const auto bytes = random_bytes((std::size_t{5} << 20U) + 13, 2);  // more than one transfer, no round number
  const auto whole = crc32c(bytes);
  const auto file = system().create(path("a"));
  const std::size_t cut = 300'001;
  auto crc = file->write_with_crc(0, std::span(bytes).first(cut), 0);
  EXPECT_EQ(crc, crc32c(std::span(bytes).first(cut)));
  crc = file->write_with_crc(cut, std::span(bytes).subspan(cut), crc);
  EXPECT_EQ(crc, whole);
  EXPECT_EQ(file->checksum(0, bytes.size(), 0), whole);
  EXPECT_EQ(file->checksum(cut, bytes.size() - cut, file->checksum(0, cut, 0)), whole);

  std::vector<std::byte> back(bytes.size());
  EXPECT_EQ(file->read_with_crc(0, back, 0), whole);
  EXPECT_EQ(back, bytes);
  const auto reader = system().open(path("a"), Access::read);
  std::vector<std::byte> middle(1000);
  EXPECT_EQ(reader->read_with_crc(cut, middle, 7), crc32c(std::span(bytes).subspan(cut, 1000), 7));
  EXPECT_EQ(file->write_with_crc(0, {}, 42), 42U);
}

TEST_P(Contract, ReadsAndWritesWithoutAChecksumAreTheSame) {
  constexpr std::size_t kSize = (std::size_t{5} << 20U) + 13;
  const auto bytes = random_bytes(kSize, 6);
  const auto file = system().create(path("a"));
  const std::size_t cut = 300'001;
  file->write(cut, std::span(bytes).subspan(cut));
  file->write(0, std::span(bytes).first(cut));
  file->write(7, {});
  EXPECT_EQ(file->checksum(0, kSize, 0), crc32c(bytes));
  std::vector<std::byte> back(kSize);
  system().open(path("a"), Access::read)->read(0, back);
  EXPECT_EQ(back, bytes);
  file->reserve(kSize);
  const auto mapping = file->map(kSize);
  mapping->write(cut, std::span(bytes).first(1000));
  std::vector<std::byte> part(1000);
  for (ByteAccess* one : {static_cast<ByteAccess*>(file.get()), static_cast<ByteAccess*>(mapping.get())}) {
    one->read(cut, part);
    EXPECT_TRUE(std::ranges::equal(part, std::span(bytes).first(1000)));
    one->read(kSize - 1000, part);
    EXPECT_TRUE(std::ranges::equal(part, std::span(bytes).last(1000)));
    one->read(kSize, {});
  }
  EXPECT_EQ(code_thrown([&] { system().open(path("a"), Access::read)->write(0, bytes); }), ErrorCode::io);
}

TEST_P(Contract, SumsAreWrittenWithTheirChecksum) {
  constexpr std::size_t kSize = (std::size_t{1} << 20U) + 77;
  const auto one = random_bytes(kSize, 8);
  const auto other = random_bytes(kSize, 9);
  std::vector<std::byte> sum(kSize);
  std::ranges::transform(one, other, sum.begin(), std::bit_xor());
  const std::array<std::span<const std::byte>, 2> parts{one, other};
  const auto file = system().create(path("a"));
  file->reserve(2 * kSize);
  EXPECT_EQ(file->write_xor(3, parts, 5), crc32c(sum, 5));
  EXPECT_EQ(file->checksum(3, kSize, 5), crc32c(sum, 5));
  const auto mapping = file->map(2 * kSize);
  EXPECT_EQ(mapping->write_xor(kSize, parts, 0), crc32c(sum));
  EXPECT_EQ(file->checksum(kSize, kSize, 0), crc32c(sum));
}

TEST_P(Contract, AHoleIsReadAsZeros) {
  constexpr std::size_t kSize = 700'000;
  const auto file = system().create(path("a"));
  file->truncate(kSize);
  file->write(100'000, random_bytes(10, 7));
  std::vector<std::byte> back(kSize, std::byte{0xee});
  file->read(0, back);
  EXPECT_TRUE(std::ranges::equal(std::span(back).subspan(100'000, 10), random_bytes(10, 7)));
  std::ranges::fill(std::span(back).subspan(100'000, 10), std::byte{0});
  EXPECT_EQ(back, std::vector<std::byte>(kSize));
}

TEST_P(Contract, ReadingPastTheEndIsCorrupt) {
  const auto file = with_bytes("a", random_bytes(100, 3));
  std::vector<std::byte> buffer(101);
  EXPECT_EQ(code_thrown([&] { (void)file->read_with_crc(0, buffer, 0); }), ErrorCode::corrupt);
  EXPECT_EQ(code_thrown([&] { (void)file->read_with_crc(100, std::span(buffer).first(1), 0); }), ErrorCode::corrupt);
  EXPECT_EQ(code_thrown([&] { file->read(0, buffer); }), ErrorCode::corrupt);
  EXPECT_EQ(code_thrown([&] { file->read(100, std::span(buffer).first(1)); }), ErrorCode::corrupt);
  EXPECT_EQ(code_thrown([&] { (void)file->checksum(50, 51, 0); }), ErrorCode::corrupt);
  EXPECT_EQ(code_thrown([&] { (void)file->checksum(50, 50, 0); }), std::nullopt);
  file->reserve(100);
  const auto mapping = file->map(100);
  EXPECT_EQ(code_thrown([&] { (void)mapping->read_with_crc(99, std::span(buffer).first(2), 0); }), ErrorCode::corrupt);
  EXPECT_EQ(code_thrown([&] { mapping->read(99, std::span(buffer).first(2)); }), ErrorCode::corrupt);
  EXPECT_EQ(code_thrown([&] { mapping->read(~0ULL, std::span(buffer).first(2)); }), ErrorCode::corrupt);
  EXPECT_EQ(code_thrown([&] { (void)mapping->write_with_crc(~0ULL, std::span(buffer).first(2), 0); }),
            ErrorCode::corrupt);
}

TEST_P(Contract, AFileOpenedForReadingIsNotWritten) {
  with_bytes("a", random_bytes(100, 3));
  const auto file = system().open(path("a"), Access::read);
  EXPECT_EQ(code_thrown([&] { file->write_with_crc(0, random_bytes(1, 1), 0); }), ErrorCode::io);
  const auto mapping = file->map(100);
  EXPECT_EQ(code_thrown([&] { mapping->write_with_crc(0, random_bytes(1, 1), 0); }), ErrorCode::io);
}

TEST_P(Contract, EnteringAMappingChangesNothingInIt) {
  constexpr std::size_t kSize = (std::size_t{5} << 20U) + 5;
  const auto file = system().create(path("a"));
  file->reserve(kSize);
  const auto bytes = random_bytes(1000, 4);
  file->write_with_crc(3000, bytes, 0);
  const auto mapping = file->map(kSize);
  (void)mapping->prefault();
  EXPECT_EQ(mapping->checksum(0, 3000, 0), crc32c_zeros(3000, 0));
  EXPECT_EQ(mapping->checksum(3000, 1000, 0), crc32c(bytes));
  EXPECT_EQ(mapping->checksum(4000, kSize - 4000, 0), crc32c_zeros(kSize - 4000, 0));
  EXPECT_FALSE(system().open(path("a"), Access::read)->map(kSize)->prefault()) << "it could not be written";
}

TEST_P(Contract, ReservedFilesAreMappedAndShared) {
  constexpr std::size_t kSize = (std::size_t{1} << 20U) + 5;
  const auto bytes = random_bytes(kSize, 4);
  auto file = system().create(path("a"));
  file->reserve(kSize);
  EXPECT_EQ(file->status().size_bytes, kSize);
  file->reserve(10);  // never shrinks
  EXPECT_EQ(file->status().size_bytes, kSize);
  EXPECT_EQ(file->checksum(0, kSize, 0), crc32c_zeros(kSize, 0));

  auto mapping = file->map(kSize);
  EXPECT_EQ(mapping->write_with_crc(0, bytes, 0), crc32c(bytes));
  EXPECT_EQ(file->checksum(0, kSize, 0), crc32c(bytes));
  file->write_with_crc(1000, random_bytes(10, 5), 0);
  EXPECT_EQ(mapping->bytes()[1003], random_bytes(10, 5)[3]);
  file.reset();
  EXPECT_EQ(mapping->bytes().size(), kSize);
  EXPECT_EQ(mapping->bytes()[kSize - 1], bytes.back());
  EXPECT_EQ(mapping->checksum(1010, kSize - 1010, 0), crc32c(std::span(bytes).subspan(1010)));
  mapping.reset();
  EXPECT_EQ(system().open(path("a"), Access::read)->map(0)->bytes().size(), 0U);
}

TEST_P(Contract, AFileThatAnOutsiderCutIsNotMapped) {
  const auto file = system().create(path("a"));
  file->reserve(8192);
  ground_->truncate(path("a"), 4096);
  EXPECT_EQ(file->status().size_bytes, 4096U);
  EXPECT_EQ(code_thrown([&] { (void)file->map(8192); }), ErrorCode::corrupt);
  EXPECT_EQ(code_thrown([&] { (void)file->map(4096); }), std::nullopt);
}

TEST_P(Contract, TruncateCutsAndGrowsWithZeros) {
  const auto file = with_bytes("a", random_bytes(100, 6));
  file->truncate(10);
  file->truncate(20);
  EXPECT_EQ(file->checksum(10, 10, 0), crc32c_zeros(10, 0));
  EXPECT_EQ(file->status().size_bytes, 20U);
}

TEST_P(Contract, RenameReplacesAndRemoveForgivesAbsence) {
  const auto a = with_bytes("a", random_bytes(10, 7));
  const auto b = with_bytes("b", random_bytes(20, 8));
  system().rename(path("a"), path("b"));
  EXPECT_FALSE(system().status(path("a")));
  EXPECT_EQ(system().status(path("b")).value().size_bytes, 10U);
  EXPECT_EQ(b->status().links, 0U);  // replaced, and still readable by its handle
  EXPECT_EQ(b->checksum(0, 20, 0), crc32c(random_bytes(20, 8)));
  system().remove(path("b"));
  EXPECT_EQ(a->status().links, 0U);
  EXPECT_NO_THROW(system().remove(path("b")));
  EXPECT_NO_THROW(system().remove(path("no/such/directory")));
  EXPECT_EQ(code_thrown([&] { system().rename(path("a"), path("b")); }), ErrorCode::not_found);
}

TEST_P(Contract, DirectoriesAreMadeListedAndRemovedWhenEmpty) {
  system().make_directory(path("directory"));
  EXPECT_NO_THROW(system().make_directory(path("directory")));
  EXPECT_EQ(system().status(path("directory")).value().kind, Kind::directory);
  EXPECT_EQ(system().status(path("directory")).value().mode, 0700U);
  for (const auto* name : {"directory/c", "directory/a", "directory/b"}) with_bytes(name, {});
  EXPECT_THAT(system().list(path("directory")), ElementsAre("a", "b", "c"));
  EXPECT_EQ(code_thrown([&] { system().remove(path("directory")); }), ErrorCode::io);
  for (const auto* name : {"directory/c", "directory/a", "directory/b"}) system().remove(path(name));
  system().remove(path("directory"));
  EXPECT_FALSE(system().status(path("directory")));
  EXPECT_EQ(code_thrown([&] { (void)system().list(path("directory")); }), ErrorCode::not_found);
  with_bytes("file", {});
  EXPECT_EQ(code_thrown([&] { system().make_directory(path("file")); }), ErrorCode::io);
  EXPECT_EQ(code_thrown([&] { (void)system().list(path("file")); }), ErrorCode::io);
  ground_->plant_link(path("link"), ground_->directory());
  EXPECT_EQ(code_thrown([&] { (void)system().list(path("link")); }), ErrorCode::io);
  EXPECT_EQ(code_thrown([&] { system().sync_directory(path("link")); }), ErrorCode::io);
}

TEST_P(Contract, SyncsAndCanonicalPathsWork) {
  const auto file = with_bytes("a", random_bytes(10, 9));
  file->sync();
  system().sync_directory(ground_->directory());
  ground_->plant_link(path("link"), ground_->directory());
  EXPECT_EQ(system().canonical(path("link/./a")), system().canonical(path("a")));
  EXPECT_EQ(code_thrown([&] { (void)system().canonical(path("none")); }), ErrorCode::not_found);
  EXPECT_EQ(code_thrown([&] { system().sync_directory(path("none")); }), ErrorCode::not_found);
}

TEST_P(Contract, SpaceNamesItsLimit) {
  const Space space = system().space(ground_->directory());
  EXPECT_GT(space.free_bytes, 0U);
  EXPECT_GT(space.free_inodes, 0U);
  EXPECT_FALSE(space.limit.empty());
  if (std::string(GetParam()) == "memory") {
    EXPECT_TRUE(space.memory_backed);
  }
  EXPECT_EQ(code_thrown([&] { (void)system().space(path("none")); }), ErrorCode::not_found);
}

TEST_P(Contract, OneProcessLocksOnceAndIsNamedAsHolder) {
  auto lock = system().try_lock(path("lock"), "me");
  ASSERT_NE(lock, nullptr);
  EXPECT_EQ(system().try_lock(path("lock"), "me again"), nullptr);
  EXPECT_EQ(system().lock_holder(path("lock")), "me");
  EXPECT_EQ(system().lock_holder(path("other")), std::nullopt);
  lock.reset();
  EXPECT_NE(system().try_lock(path("lock"), "me"), nullptr);
  ground_->plant_link(path("link"), path("lock"));
  EXPECT_EQ(code_thrown([&] { (void)system().try_lock(path("link"), "me"); }), ErrorCode::io);
  EXPECT_EQ(code_thrown([&] { (void)system().lock_holder(path("link")); }), ErrorCode::io);
}

}  // namespace
}  // namespace kedge::fs::file_system_test

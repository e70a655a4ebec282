// Files written by the Kedge that introduced this format version: they must be read, and come out the same today.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "checksum/crc32c.hpp"
#include "format/attributes.hpp"
#include "format/fields.hpp"
#include "format/manifest_rows.hpp"
#include "harness/redundancy_support.hpp"
#include "interop/golden.hpp"
#include "unit/format/support.hpp"

namespace kedge::testing::golden_test {
namespace {

using format::testing::MemoryFile;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr const char* kWhatToDo =
    "the format changed. If that is meant: raise the versions in src/format/on_disk.hpp (kFormatVersion and those "
    "beside "
    "it), describe the change in share/doc/format.md, and run mpi_tests/interop/make_golden.sh BUILD_DIRECTORY";

std::vector<std::byte> golden(const std::string& name) {
  const std::string path = compose("{}/v{}/{}", KEDGE_GOLDEN_DIRECTORY, format::kFormatVersion, name);
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  EXPECT_FALSE(bytes.empty()) << path << " is missing: mpi_tests/interop/make_golden.sh makes it";
  const auto whole = std::as_bytes(std::span(bytes));
  return {whole.begin(), whole.end()};
}

MemoryFile golden_file(const std::string& name) { return MemoryFile(golden(name)); }

std::vector<std::byte> parity_in(const std::vector<std::byte>& file) {
  return {file.begin() + format::kSuperblockBytes, file.end()};
}

std::string golden_hdf5() {
  std::string text;
  for (const std::byte letter : golden(kGoldenHdf5)) text += static_cast<char>(letter);
  return text;
}

/// Without what the writer fills in.
format::Superblock identity_of(format::Superblock superblock) {
  superblock.file_size = superblock.index_offset = superblock.index_size = 0;
  superblock.index_crc = 0;
  superblock.extents.clear();
  superblock.is_sealed = false;
  return superblock;
}

// --- read by today's readers ---

TEST(Golden, ContainersAreReadWithEveryValue) {
  for (std::uint32_t rank = 0; rank < kGoldenRanks; ++rank) {
    MemoryFile file = golden_file(golden_container(rank));
    const format::ContainerReader reader(file, file.size(), golden_container(rank));
    EXPECT_TRUE(reader.verify().empty());
    EXPECT_EQ(identity_of(reader.superblock()), golden_superblock(rank));
    const auto specs = golden_regions(rank);
    ASSERT_EQ(reader.regions().size(), specs.size());
    for (std::size_t i = 0; i < specs.size(); ++i) {
      const format::StoredRegion& region = reader.regions()[i];
      EXPECT_EQ(region.spec, specs[i]);
      std::vector<std::byte> values(region.size_bytes);
      reader.read(region, values);
      EXPECT_EQ(values, golden_values(specs[i], rank)) << specs[i].name;
    }
  }
}

TEST(Golden, TheManifestIsReadWithEveryValue) {
  MemoryFile file = golden_file(kGoldenManifest);
  const format::ManifestReader reader(file, file.size(), kGoldenManifest);
  EXPECT_TRUE(reader.verify().empty());
  format::ManifestHead expected = golden_head();
  const auto rows = reader.rows();
  ASSERT_EQ(rows.size(), kGoldenRanks);
  for (std::uint32_t rank = 0; rank < kGoldenRanks; ++rank) {
    const auto container = golden(golden_container(rank));
    const format::Superblock superblock = format::decode_superblock(container, golden_container(rank));
    EXPECT_EQ(rows[rank], (format::ShardRow{golden_container(rank), container.size(), superblock.index_offset,
                                            static_cast<std::uint32_t>(superblock.index_size), superblock.index_crc,
                                            crc32c(container)}));
    expected.total_bytes += container.size();
  }
  const format::ManifestHead& head = reader.head();
  expected.file_size = file.size();
  expected.table_offset = head.table_offset;  // these four lie where HDF5 put them
  expected.attributes_offset = head.attributes_offset;
  expected.attributes_size = head.attributes_size;
  expected.extents = head.extents;
  expected.has_view = true;
  EXPECT_EQ(head, expected);
  EXPECT_EQ(reader.attributes(), golden_attributes());
}

TEST(Golden, SetsAreReadAndALostContainerIsRebuilt) {
  redundancy::SetFiles files;
  redundancy::SetShape shape{Scheme::xor_, {}};
  for (std::uint32_t rank = 0; rank < kGoldenRanks; ++rank) {
    files.container.push_back(golden(golden_container(rank)));
    files.parity.push_back(parity_in(golden(golden_parity(rank))));
    shape.sizes.push_back(files.container.back().size());
  }
  for (std::uint32_t rank = 0; rank < kGoldenRanks; ++rank) {
    format::SetDescriptor expected = golden_set(format::SetFileKind::descriptor, rank);
    for (std::uint32_t member = 0; member < kGoldenRanks; ++member) {
      expected.members[member].crc = crc32c(files.container[member]);
      expected.members[member].size_bytes = files.container[member].size();
    }
    EXPECT_EQ(format::decode_set_descriptor(golden(golden_descriptor(rank)), "set"), expected);
    expected.kind = format::SetFileKind::parity;
    expected.parity_bytes = files.parity[rank].size();
    expected.parity_crc = crc32c(files.parity[rank]);
    EXPECT_EQ(format::decode_set_descriptor(golden(golden_parity(rank)), "parity"), expected);
  }
  for (std::uint32_t lost = 0; lost < kGoldenRanks; ++lost) {
    redundancy::SetFiles left = files;
    std::ranges::fill(left.container[lost], std::byte{0xee});
    std::ranges::fill(left.parity[lost], std::byte{0xee});
    redundancy::PresentFiles present{std::vector<bool>(kGoldenRanks, true), std::vector<bool>(kGoldenRanks, true)};
    present.container[lost] = present.parity[lost] = false;
    execute(left, decode_stripes(shape, present));
    EXPECT_TRUE(left == files) << "rank " << lost << " came back otherwise";
  }
}

// --- written again ---

// HDF5 places regions, index and table, and writes metadata of its own: whole files are the same with the release of
// HDF5 that they were made with. What Kedge itself writes is the same with any: the tests below.
TEST(Golden, WrittenAgainTheyAreTheSameBytes) {
  if (golden_hdf5() != hdf5_release() + "\n") {
    GTEST_SKIP() << "made with HDF5 " << golden_hdf5() << "and this is " << hdf5_release()
                 << ": only Kedge's own bytes can be compared";
  }
  for (const GoldenFile& made : make_golden_files()) {
    const auto before = golden(made.name);
    const auto differs = std::ranges::mismatch(made.bytes, before);
    EXPECT_TRUE(made.bytes == before) << made.name << " differs from byte " << differs.in1 - made.bytes.begin()
                                      << " on: " << kWhatToDo;
  }
}

TEST(Golden, KedgesOwnBytesOfContainersAreTheSame) {
  for (std::uint32_t rank = 0; rank < kGoldenRanks; ++rank) {
    const auto bytes = golden(golden_container(rank));
    const format::Superblock superblock = format::decode_superblock(bytes, "container");
    EXPECT_TRUE(
        std::ranges::equal(format::encode_superblock(superblock), std::span(bytes).first(format::kSuperblockBytes)))
        << kWhatToDo;
    const auto stored = std::span(bytes).subspan(superblock.index_offset, superblock.index_size);
    const format::Index index = format::decode_index(stored, superblock.extents, superblock.file_size, "container");
    auto made = format::encode_index_head(index.map);
    std::ranges::copy(std::as_bytes(std::span(index.checksums)), std::back_inserter(made));
    EXPECT_TRUE(std::ranges::equal(made, stored)) << kWhatToDo;
  }
}

TEST(Golden, KedgesOwnBytesOfSetsAreTheSame) {
  for (std::uint32_t rank = 0; rank < kGoldenRanks; ++rank) {
    for (const std::string& name : {golden_descriptor(rank), golden_parity(rank)}) {
      const auto bytes = golden(name);
      EXPECT_TRUE(std::ranges::equal(format::encode_set_descriptor(format::decode_set_descriptor(bytes, name)),
                                     std::span(bytes).first(format::kSuperblockBytes)))
          << name << ": " << kWhatToDo;
    }
  }
}

TEST(Golden, KedgesOwnBytesOfTheManifestAreTheSame) {
  const auto bytes = golden(kGoldenManifest);
  const format::ManifestHead head = format::decode_manifest_head(bytes, kGoldenManifest);
  EXPECT_TRUE(std::ranges::equal(format::encode_manifest_head(head), std::span(bytes).first(format::kSuperblockBytes)))
      << kWhatToDo;
  for (std::uint32_t rank = 0; rank < kGoldenRanks; ++rank) {
    const auto stored =
        std::span(bytes).subspan(head.table_offset + rank * format::kShardRowBytes, format::kShardRowBytes);
    const format::RowIdentity place{head.commit.id, LogicalRank{rank}};
    std::vector<std::byte> made(format::kShardRowBytes);
    format::encode_row(format::decode_row(stored, place, kGoldenManifest), place, made);
    EXPECT_TRUE(std::ranges::equal(made, stored)) << kWhatToDo;
  }
  const std::string attributes = format::encode_attributes(golden_attributes());
  EXPECT_TRUE(std::ranges::equal(std::as_bytes(std::span(attributes)),
                                 std::span(bytes).subspan(head.attributes_offset, head.attributes_size)))
      << kWhatToDo;
}

// --- other versions ---

/// What the file's reader says of it if it claims to be of that version, its checksum right.
std::string refusal(const std::string& name, std::uint32_t version) {
  MemoryFile file = golden_file(name);
  static_assert(format::set_at::kVersion == format::at::kVersion &&
                format::manifest_at::kVersion == format::at::kVersion);
  format::put_field(std::span(file.content), format::at::kVersion, version);
  format::put_field(std::span(file.content), format::at::kCrc, crc32c(std::span(file.content).first(format::at::kCrc)));
  try {
    if (name == kGoldenManifest) static_cast<void>(format::ManifestReader(file, file.size(), name));
    else if (name.ends_with(".h5")) static_cast<void>(format::ContainerReader(file, file.size(), name));
    else static_cast<void>(format::decode_set_descriptor(file.content, name));
    return {};
  } catch (const Error& error) {
    EXPECT_EQ(error.failure().path, name);
    return error.failure().message;
  }
}

TEST(Golden, OtherVersionsAreRefusedByName) {
  const std::uint32_t ours = format::kFormatVersion;
  for (const std::string& name :
       {golden_container(0), golden_descriptor(1), golden_parity(2), std::string(kGoldenManifest)}) {
    SCOPED_TRACE(name);
    EXPECT_EQ(refusal(name, ours), "") << "the test's own change was refused";
    EXPECT_THAT(refusal(name, ours + 1),
                AllOf(HasSubstr(compose("version {} is newer", ours + 1)), HasSubstr("use a newer Kedge")));
    EXPECT_THAT(refusal(name, ours - 1),
                AllOf(HasSubstr(compose("version {} is older", ours - 1)), HasSubstr("use the Kedge that wrote it")));
  }
}

}  // namespace
}  // namespace kedge::testing::golden_test

// What a file of the store must be: every rule broken once.
#include "store/verify_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "checksum/crc32c.hpp"
#include "format/container_writer.hpp"
#include "harness/redundancy_support.hpp"

namespace kedge::store::verify_file_test {
namespace {

using redundancy::Bytes;
using redundancy::MemoryFile;
using testing::HasSubstr;

Id128 id_of(std::uint8_t number) {
  Id128 id;
  id.bytes.fill(number);
  return id;
}

CommitHead commit() {
  CommitHead head;
  head.run_id = id_of(1);
  head.id = id_of(2);
  head.generation = 4;
  head.incarnation = 1;
  head.world_size = 8;
  head.tag = "step-1";
  return head;
}

constexpr LogicalRank kRank{6};
const FileKey kKey{id_of(2), {}};
const FileKey kSetKey{id_of(2), id_of(3)};

class Target final : public format::ContainerTarget {
 public:
  void reserve(std::uint64_t size_bytes) override {
    if (size_bytes > content.size()) set_size(size_bytes);
  }
  fs::ByteAccess& bytes() override { return *file; }
  void set_size(std::uint64_t size_bytes) override {
    if (file) content = file->bytes();
    content.resize(size_bytes);
    file = std::make_unique<MemoryFile>(content);
  }

  Bytes content;
  std::unique_ptr<MemoryFile> file;
};

Bytes container(const CommitHead& head = commit(), LogicalRank rank = kRank) {
  Target target;
  format::ContainerWriter writer(target, nullptr);
  const Bytes values = redundancy::content(100'000, 1);
  writer.add({"values", DataType::opaque, Shape{values.size()}, {}, false}, values);
  (void)writer.finish();
  format::Superblock superblock;
  superblock.commit = head;
  superblock.logical_rank = rank;
  writer.seal(superblock);
  return target.file->bytes();
}

format::SetDescriptor description() {
  format::SetDescriptor set;
  set.run_id = id_of(1);
  set.commit_id = id_of(2);
  set.protection_id = id_of(3);
  set.generation = 4;
  set.world_size = 8;
  set.members = {{LogicalRank{5}, 0, 10'000}, {kRank, 0, 10'000}};
  set.position = 1;
  return set;
}

Bytes descriptor(const format::SetDescriptor& set = description()) {
  const auto head = format::encode_set_descriptor(set);
  return {head.begin(), head.end()};
}

Bytes parity(format::SetDescriptor set = description()) {
  const Bytes content = redundancy::content(10'000, 2);
  set.kind = format::SetFileKind::parity;
  set.parity_bytes = content.size();
  set.parity_crc = crc32c(content);
  Bytes bytes = descriptor(set);
  bytes.insert(bytes.end(), content.begin(), content.end());
  return bytes;
}

Bytes manifest() {
  const std::vector<std::string> files{"data/0/rank-0.h5", "data/0/rank-1.h5"};
  std::vector<format::ShardRow> rows;
  rows.reserve(files.size());
  for (const std::string& file : files) rows.push_back({file, 10'000, 8'192, 500, 1, 2});
  format::ManifestHead head;
  head.commit = commit();
  head.commit.world_size = 2;
  head.total_bytes = 20'000;
  head.run = "heat";
  return format::encode_manifest(*format::make_manifest_layout(nullptr, files, {}), head, rows, {});
}

ExpectedFile expected(FileKind kind) {
  ExpectedFile file;
  file.kind = kind;
  file.run_id = id_of(1);
  file.logical_rank = kRank;
  file.key = kind == FileKind::container || kind == FileKind::manifest ? kKey : kSetKey;
  file.generation = 4;
  file.world_size = kind == FileKind::manifest ? 2 : 8;
  file.tag = "step-1";
  return file;
}

VerifiedFile verified(const Bytes& bytes, const ExpectedFile& what, Verify verify = Verify::all) {
  MemoryFile file(bytes);
  return verify_file(file, bytes.size(), "/store/file", what, verify);
}

Bytes bytes_of(FileKind kind) {
  switch (kind) {
    case FileKind::container: return container();
    case FileKind::parity: return parity();
    case FileKind::descriptor: return descriptor();
    case FileKind::manifest: return manifest();
  }
  return {};
}

constexpr FileKind kKinds[] = {FileKind::container, FileKind::parity, FileKind::descriptor, FileKind::manifest};

TEST(VerifyFile, WhatIsAsItShouldBeIsIntact) {
  for (const FileKind kind : kKinds) {
    for (const Verify verify : {Verify::headers, Verify::all}) {
      for (const ExpectedFile& what : {expected(kind), ExpectedFile{}}) {
        const VerifiedFile found = verified(bytes_of(kind), what, verify);
        EXPECT_TRUE(found.is_intact()) << kind_name(kind) << ": " << found.message;
        EXPECT_EQ(found.kind, kind);
        EXPECT_EQ(found.key(), expected(kind).key);
        if (kind != FileKind::manifest) {
          EXPECT_EQ(found.logical_rank(), kRank);
        }
      }
    }
  }
}

struct Rule {
  const char* what;
  std::function<void(ExpectedFile&)> expect;
  FileFault fault;
  const char* message;
};

TEST(VerifyFile, SaysWhoseFileItIsInstead) {
  const Rule rules[] = {
      {"run", [](ExpectedFile& file) { file.run_id = id_of(9); }, FileFault::run, "it belongs to another run"},
      {"rank", [](ExpectedFile& file) { file.logical_rank = LogicalRank{5}; }, FileFault::rank, " of rank 6"},
      {"commit", [](ExpectedFile& file) { file.key->commit_id = id_of(9); }, FileFault::commit, "of another commit"},
      {"generation", [](ExpectedFile& file) { file.generation = 5; }, FileFault::commit, "generation 4 instead of 5"},
      {"world size", [](ExpectedFile& file) { file.world_size = 9; }, FileFault::commit, "ranks instead of 9"},
      {"tag", [](ExpectedFile& file) { file.tag = "step-2"; }, FileFault::commit, "'step-1' instead of 'step-2'"},
      {"protection", [](ExpectedFile& file) { file.key->protection_id = id_of(9); }, FileFault::protection,
       "of another protection"},
  };
  for (const FileKind kind : kKinds) {
    const Bytes bytes = bytes_of(kind);
    for (const Rule& rule : rules) {
      ExpectedFile what = expected(kind);
      rule.expect(what);
      const bool is_set = kind == FileKind::parity || kind == FileKind::descriptor;
      const bool has_none = (kind == FileKind::manifest && rule.fault == FileFault::rank) ||
                            (is_set && std::string_view(rule.what) == "tag");
      for (const Verify verify : {Verify::headers, Verify::all}) {
        const VerifiedFile found = verified(bytes, what, verify);
        EXPECT_EQ(found.fault, has_none ? FileFault::none : rule.fault) << kind_name(kind) << ", " << rule.what;
        if (!has_none) {
          EXPECT_THAT(found.message, HasSubstr(rule.message)) << kind_name(kind) << ", " << rule.what;
        }
        EXPECT_TRUE(found.key().has_value()) << "what was read is told all the same";
      }
    }
  }
}

TEST(VerifyFile, AFileOfAnotherKindIsNamed) {
  for (const FileKind kind : kKinds) {
    for (const FileKind other : kKinds) {
      if (other == kind) continue;
      const VerifiedFile found = verified(bytes_of(other), expected(kind), Verify::headers);
      EXPECT_EQ(found.fault, FileFault::kind) << kind_name(other) << " for a " << kind_name(kind);
      EXPECT_EQ(found.kind, other);
      EXPECT_THAT(found.message, HasSubstr("as its name says"));
    }
  }
}

TEST(VerifyFile, ARankThatItsCommitDoesNotHaveIsNone) {
  const VerifiedFile found = verified(container(commit(), LogicalRank{8}), {}, Verify::headers);
  EXPECT_EQ(found.fault, FileFault::rank);
  EXPECT_THAT(found.message, HasSubstr("rank 8, and its commit has 8 ranks"));
}

TEST(VerifyFile, SizesAreExact) {
  for (const FileKind kind : kKinds) {
    for (const int change : {-1, 1}) {
      if (kind == FileKind::descriptor && change < 0) continue;  // that is too short for all of them
      Bytes bytes = bytes_of(kind);
      bytes.resize(bytes.size() + static_cast<std::size_t>(static_cast<std::ptrdiff_t>(change)));
      const VerifiedFile found = verified(bytes, expected(kind), Verify::headers);
      EXPECT_EQ(found.fault, kind == FileKind::manifest ? FileFault::head : FileFault::size)
          << kind_name(kind) << change;
    }
    Bytes bytes = bytes_of(kind);
    bytes.resize(4095);
    EXPECT_EQ(verified(bytes, expected(kind)).fault, FileFault::truncated);
  }
}

TEST(VerifyFile, HeadsAreCheckedByTheirChecksum) {
  for (const FileKind kind : kKinds) {
    Bytes bytes = bytes_of(kind);
    bytes[40] ^= std::byte{1};
    EXPECT_EQ(verified(bytes, expected(kind), Verify::headers).fault, FileFault::head) << kind_name(kind);
    bytes = bytes_of(kind);
    bytes[0] ^= std::byte{1};
    EXPECT_EQ(verified(bytes, expected(kind), Verify::headers).fault, FileFault::bad_magic) << kind_name(kind);
    EXPECT_EQ(verified(bytes, {}, Verify::headers).fault, FileFault::bad_magic) << kind_name(kind);
    std::fill_n(bytes.begin(), 4096, std::byte{0});
    EXPECT_EQ(verified(bytes, expected(kind)).fault, FileFault::unsealed) << kind_name(kind);
  }
}

TEST(VerifyFile, AnIndexIsReadWithTheHeaders) {
  Bytes bytes = container();
  const auto superblock = format::decode_superblock(bytes, "");
  bytes[superblock.index_offset + 1] ^= std::byte{1};
  EXPECT_EQ(verified(bytes, expected(FileKind::container), Verify::headers).fault, FileFault::structure);
}

TEST(VerifyFile, EveryByteIsReadIfAllIsAskedFor) {
  for (const FileKind kind : {FileKind::container, FileKind::parity, FileKind::manifest}) {
    Bytes bytes = bytes_of(kind);
    bytes[kind == FileKind::container ? bytes.size() / 2 : bytes.size() - 1] ^= std::byte{1};
    EXPECT_TRUE(verified(bytes, expected(kind), Verify::headers).is_intact()) << kind_name(kind);
    const VerifiedFile found = verified(bytes, expected(kind), Verify::all);
    EXPECT_EQ(found.fault, FileFault::content) << kind_name(kind);
    EXPECT_THAT(found.message, HasSubstr("damaged"));
    EXPECT_FALSE(found.damages.empty());
  }
}

TEST(VerifyFile, ProgressAddsUpToTheFile) {
  for (const FileKind kind : kKinds) {
    const Bytes bytes = bytes_of(kind);
    MemoryFile file(bytes);
    std::uint64_t seen = 0;
    EXPECT_TRUE(verify_file(file, bytes.size(), "", {}, Verify::all, [&](std::uint64_t n) { seen += n; }).is_intact());
    EXPECT_EQ(seen, bytes.size()) << kind_name(kind);
  }
}

TEST(VerifyFile, WhoRequiresAFileGetsItOrAnError) {
  const Bytes bytes = parity();
  MemoryFile file(bytes);
  EXPECT_EQ(require_intact_file(file, bytes.size(), "/p", expected(FileKind::parity), Verify::all)
                .set_descriptor->parity_bytes,
            10'000U);
  try {
    (void)require_intact_file(file, bytes.size(), "/p", expected(FileKind::container), Verify::all);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::corrupt);
    EXPECT_EQ(error.failure().path, "/p");
  }
}

}  // namespace
}  // namespace kedge::store::verify_file_test

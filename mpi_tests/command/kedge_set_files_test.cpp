// The kedge command on parity files and set descriptors: what it shows, and every way in which one can be damaged.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <vector>

#include "base/json.hpp"
#include "checksum/crc32c.hpp"
#include "command/kedge_program.hpp"
#include "format/set_descriptor.hpp"
#include "harness/sample_store.hpp"

namespace kedge::testing::kedge_set_files_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr std::uint64_t kParityBytes = (std::uint64_t{9} << 20U) + 123;  // several pieces, and no whole one

class KedgeSetFiles : public ::testing::Test {
 protected:
  KedgeSetFiles() : parity_(kParityBytes) {
    for (std::size_t i = 0; i < parity_.size(); ++i) parity_[i] = static_cast<std::byte>(i * 31 + i / 65537);
    set_.run_id.bytes.fill(0x11);
    set_.commit_id.bytes.fill(0xab);
    set_.protection_id.bytes.fill(0xcd);
    set_.generation = 7;
    set_.world_size = 8;
    set_.scheme = Scheme::xor_;
    set_.set_number = 1;
    set_.position = 1;
    for (const std::uint32_t rank : {0U, 2U, 5U}) set_.members.push_back({LogicalRank{rank}, 0x1234, 1'000'000});
    write("set-2.0.kedge", false);
    write("parity-2.0.kedge", true);
    container_ = store_.add("rank-2.0.h5", sample_regions(), sample_identity());
  }

  void write(const std::string& name, bool is_parity) {
    if (is_parity) {
      set_.kind = format::SetFileKind::parity;
      set_.parity_bytes = parity_.size();
      set_.parity_crc = crc32c(parity_);
    }
    const auto head = format::encode_set_descriptor(set_);
    std::ofstream file(store_.path(name), std::ios::binary);
    file.write(reinterpret_cast<const char*>(head.data()), static_cast<std::streamsize>(head.size()));
    if (is_parity) {
      file.write(reinterpret_cast<const char*>(parity_.data()), static_cast<std::streamsize>(parity_.size()));
    }
  }

  [[nodiscard]] std::string parity() const { return store_.path("parity-2.0.kedge"); }
  [[nodiscard]] std::string descriptor() const { return store_.path("set-2.0.kedge"); }

  /// The file alone and the store that it lies in: both must see the damage.
  void expect_damaged(const std::string& path, const std::string& what) {
    for (const std::string& target : {path, store_.directory()}) {
      const Result verified = kedge("verify " + target);
      EXPECT_EQ(verified.status, 1) << verified.text;
      EXPECT_THAT(verified.text, HasSubstr(what));
    }
  }

  SampleStore store_;
  std::vector<std::byte> parity_;
  format::SetDescriptor set_;
  std::string container_;
};

TEST_F(KedgeSetFiles, ShowTellsTheSetInWordsAndInJson) {
  const Result shown = kedge("show " + parity());
  EXPECT_EQ(shown.status, 0) << shown.text;
  EXPECT_THAT(shown.text, AllOf(HasSubstr("parity"), HasSubstr("xor"), HasSubstr("abababab"), HasSubstr("cdcdcdcd")));
  for (const char* rank : {"0", "2", "5"}) EXPECT_THAT(shown.text, HasSubstr(rank));
  const Json json = Json::parse(kedge("show --json " + descriptor()).text);
  EXPECT_EQ(json.at("kind"), "descriptor");
  EXPECT_EQ(json.at("members").size(), 3U);
}

TEST_F(KedgeSetFiles, AWholeStoreIsVerifiedByKind) {
  const Result verified = kedge("verify " + store_.directory());
  EXPECT_EQ(verified.status, 0) << verified.text;
  EXPECT_THAT(verified.text, HasSubstr("3 ok"));
  const Json json = Json::parse(kedge("verify --json " + store_.directory()).text);
  EXPECT_EQ(json.at("ok_parity"), 1);
  EXPECT_EQ(json.at("ok_descriptors"), 1);
  EXPECT_EQ(json.at("ok_containers"), 1);
}

TEST_F(KedgeSetFiles, AFlippedBitInParityIsDamage) {
  for (const std::uint64_t offset :
       {std::uint64_t{4096}, std::uint64_t{4096} + kParityBytes / 2, std::uint64_t{4096} + kParityBytes - 1}) {
    flip_bit(parity(), offset);
    expect_damaged(parity(), "parity");
    flip_bit(parity(), offset);
  }
  EXPECT_EQ(kedge("verify " + store_.directory()).status, 0);
}

TEST_F(KedgeSetFiles, AFlippedBitInAHeaderIsDamage) {
  for (const std::uint64_t offset : {0U, 20U, 100U, 500U, 4095U}) {
    flip_bit(descriptor(), offset);
    expect_damaged(descriptor(), "set-2.0.kedge");
    flip_bit(descriptor(), offset);
  }
}

TEST_F(KedgeSetFiles, AParityFileOfAnotherSizeIsDamage) {
  truncate(parity(), 4096 + kParityBytes - 1);
  expect_damaged(parity(), "parity-2.0.kedge");
  truncate(parity(), 4096 + kParityBytes + 1);
  expect_damaged(parity(), "parity-2.0.kedge");
  truncate(parity(), 100);
  expect_damaged(parity(), "parity-2.0.kedge");
}

TEST_F(KedgeSetFiles, AFileUnderAnothersNameIsDamage) {
  std::filesystem::rename(parity(), store_.path("parity-5.0.kedge"));
  const Result verified = kedge("verify " + store_.directory());
  EXPECT_EQ(verified.status, 1) << verified.text;
  EXPECT_THAT(verified.text, HasSubstr("parity-5.0.kedge"));
}

TEST_F(KedgeSetFiles, AnUnsealedOneIsNoDamage) {
  std::fstream file(parity(), std::ios::binary | std::ios::in | std::ios::out);
  const std::vector<char> zeros(4096);
  file.write(zeros.data(), static_cast<std::streamsize>(zeros.size()));
  file.close();
  const Result verified = kedge("verify " + store_.directory());
  EXPECT_EQ(verified.status, 0) << verified.text;
  EXPECT_THAT(verified.text, HasSubstr("1 being written or free"));
}

TEST_F(KedgeSetFiles, SeveralMembersOfASetInOneStoreAreNotProtected) {
  format::Superblock other = sample_identity();
  other.logical_rank = LogicalRank{5};  // a job of other ranks rebuilt it here
  (void)store_.add("rank-5.1.h5", sample_regions(), other);
  EXPECT_THAT(kedge("ls " + store_.directory()).text,
              ::testing::ContainsRegex("step-000100 +7 +[^\n]* 2 of 8 +[0-9.]+ MiB +local +9.0 MiB\n"));
  set_.scheme = Scheme::rs;
  set_.parity_count = 2;
  write("set-2.0.kedge", false);
  write("parity-2.0.kedge", true);
  EXPECT_THAT(kedge("ls " + store_.directory()).text, ::testing::ContainsRegex("MiB +protected +9.0 MiB\n"));
}

TEST_F(KedgeSetFiles, TheListOfAStoreTellsWhatIsProtected) {
  const Result listed = kedge("ls " + store_.directory());
  EXPECT_EQ(listed.status, 0) << listed.text;
  EXPECT_THAT(listed.text,
              ::testing::ContainsRegex("step-000100 +7 +[^\n]* 1 of 8 +[0-9.]+ MiB +protected +9.0 MiB\n"));
  std::filesystem::remove(container_);
  EXPECT_THAT(kedge("ls " + store_.directory()).text, ::testing::ContainsRegex("\\? +7 +\\? +0 of 8 "));
  EXPECT_EQ(kedge_json("ls " + store_.directory(), 0)["checkpoints"][0]["parity_files"], 1);
  truncate(parity(), 5000);
  const Result cut = kedge("ls " + store_.directory());
  EXPECT_EQ(cut.status, 1);
  EXPECT_THAT(cut.text, AllOf(HasSubstr("parity-2.0.kedge"), HasSubstr("truncated")));
}

}  // namespace
}  // namespace kedge::testing::kedge_set_files_test

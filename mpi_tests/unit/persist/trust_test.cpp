// Whose files on a prefix are trusted: by owner, group and permissions of every directory on the way.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "harness/faulty_fixture.hpp"
#include "persist/tags.hpp"

namespace kedge::faults::trust_test {
namespace {

using ::testing::HasSubstr;
using Kind = fs::FileStatus::Kind;

constexpr std::uint32_t kMe = 1000;
constexpr std::uint32_t kOther = 1001;
constexpr std::uint32_t kMyGroup = 1000;
constexpr std::uint32_t kMySecondGroup = 2000;
constexpr std::uint32_t kOtherGroup = 3000;

class TrustTest : public testing::Test {
 protected:
  static DiskOptions options() {
    DiskOptions options;
    options.user = kMe;
    options.group = kMyGroup;
    options.more_groups = {kMySecondGroup};
    return options;
  }
  std::string refusal(std::uint32_t owner, std::uint32_t group, std::uint32_t mode, Trust trust) {
    disk.plant("/f", {Kind::file, 10, owner, mode, 1, group});
    const auto failure = failure_of([&] { persist::require_trusted(*system, "/f", trust); });
    if (!failure) return "trusted";
    EXPECT_EQ(failure->code, ErrorCode::io);
    EXPECT_EQ(failure->path, "/f");
    return failure->message;
  }

  FaultyDisk disk{options()};
  std::shared_ptr<fs::FileSystem> system = disk.view(0);
};

TEST_F(TrustTest, SelfBelievesOnlyWhatIsOnesOwnAndNobodyElseCanChange) {
  for (const std::uint32_t mode : {0600U, 0644U, 0755U, 0444U}) {
    EXPECT_EQ(refusal(kMe, kOtherGroup, mode, Trust::self), "trusted");
  }
  EXPECT_THAT(refusal(kOther, kMyGroup, 0644, Trust::self), HasSubstr("persistent.trust = group"));
  EXPECT_THAT(refusal(kMe, kMyGroup, 0664, Trust::self), HasSubstr("chmod go-w"));
  EXPECT_THAT(refusal(kMe, kMyGroup, 0664, Trust::self), HasSubstr("persistent.trust = group"));
  EXPECT_THAT(refusal(kMe, kMyGroup, 0646, Trust::self), HasSubstr("chmod go-w"));
}

TEST_F(TrustTest, GroupBelievesOnesGroupsToo) {
  EXPECT_EQ(refusal(kMe, kOtherGroup, 0664, Trust::group), "trusted");
  EXPECT_EQ(refusal(kOther, kMyGroup, 0664, Trust::group), "trusted");
  EXPECT_EQ(refusal(kOther, kMySecondGroup, 0664, Trust::group), "trusted");
  EXPECT_THAT(refusal(kOther, kOtherGroup, 0644, Trust::group), HasSubstr("persistent.trust = any"));
  EXPECT_THAT(refusal(kMe, kMyGroup, 0666, Trust::group), HasSubstr("chmod o-w"));
  EXPECT_THAT(refusal(kOther, kMyGroup, 0666, Trust::group), HasSubstr("chmod o-w"));
}

TEST_F(TrustTest, AnyBelievesEveryFileAndDirectoryButNoLink) {
  EXPECT_EQ(refusal(kOther, kOtherGroup, 0666, Trust::any), "trusted");
  disk.make_directories("/directory", 0777);
  EXPECT_FALSE(failure_of([&] { persist::require_trusted(*system, "/directory", Trust::any); }));
  disk.plant_link("/link", "/f");
  disk.plant("/pipe", {Kind::other, 0, kMe, 0600, 1, kMyGroup});
  for (const Trust trust : {Trust::self, Trust::group, Trust::any}) {
    EXPECT_EQ(failure_of([&] { persist::require_trusted(*system, "/link", trust); })->code, ErrorCode::io);
    EXPECT_EQ(failure_of([&] { persist::require_trusted(*system, "/pipe", trust); })->code, ErrorCode::io);
    EXPECT_EQ(failure_of([&] { persist::require_trusted(*system, "/nothing", trust); })->code, ErrorCode::not_found);
  }
}

TEST_F(TrustTest, AParentIsOneInWhichNobodyWhoIsNotTrustedCanReplaceWhatIsInIt) {
  const auto refusal_of_parent = [&](std::uint32_t mode, Trust trust) -> std::string {
    disk.plant("/p", {Kind::directory, 0, kOther, mode, 2, kOtherGroup});  // whose it is does not matter
    const auto failure = failure_of([&] { persist::require_trusted_parent(*system, "/p", trust); });
    return failure ? failure->message : "trusted";
  };
  for (const Trust trust : {Trust::self, Trust::group, Trust::any}) {
    EXPECT_EQ(refusal_of_parent(0755, trust), "trusted");
    EXPECT_EQ(refusal_of_parent(01777, trust), "trusted") << "it is sticky";
  }
  EXPECT_THAT(refusal_of_parent(0757, Trust::self), HasSubstr("chmod o-w"));
  EXPECT_THAT(refusal_of_parent(0757, Trust::group), HasSubstr("chmod o-w"));
  EXPECT_EQ(refusal_of_parent(0777, Trust::any), "trusted");
  EXPECT_THAT(refusal_of_parent(0775, Trust::self), HasSubstr("persistent.trust = group"));
  EXPECT_EQ(refusal_of_parent(0775, Trust::group), "trusted");
  for (const Trust trust : {Trust::self, Trust::group, Trust::any}) {
    disk.plant("/f", {Kind::file, 10, kMe, 0644, 1, kMyGroup});
    EXPECT_EQ(failure_of([&] { persist::require_trusted_parent(*system, "/f", trust); })->code, ErrorCode::io);
    EXPECT_EQ(failure_of([&] { persist::require_trusted_parent(*system, "/nothing", trust); })->code,
              ErrorCode::not_found);
  }
}

TEST_F(TrustTest, TheRealFileSystemKnowsItsGroups) {
  const auto real = fs::posix_file_system();
  const auto status = real->status("/proc/self");
  ASSERT_TRUE(status);
  EXPECT_TRUE(real->in_group(status->group));
  EXPECT_FALSE(real->in_group(0xfffffff0U));
}

}  // namespace
}  // namespace kedge::faults::trust_test

// What a commit's head may say: invalid numbers and heads that contradict each other are refused.
#include "commits/head_check.hpp"

#include <gmock/gmock.h>

#include <functional>
#include <limits>

namespace kedge::commits::head_check_test {
namespace {

using ::testing::HasSubstr;

CommitHead possible() {
  CommitHead head;
  head.id.bytes.fill(1);
  head.generation = 1;
  head.world_size = 1;
  head.tag = "a";
  return head;
}

std::string what_of(const std::function<void(CommitHead&)>& change) {
  CommitHead head = possible();
  change(head);
  return check_head(head).value_or("nothing");
}

TEST(HeadCheck, EachFieldHasItsRange) {
  constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();
  EXPECT_EQ(check_head(possible()), std::nullopt);
  EXPECT_THAT(what_of([](auto& head) { head.id = {}; }), HasSubstr("commit id"));
  for (const std::uint64_t generation : {std::uint64_t{0}, kGenerationMax + 1, kMax}) {
    EXPECT_THAT(what_of([&](auto& head) { head.generation = generation; }), HasSubstr("generation")) << generation;
  }
  EXPECT_EQ(what_of([](auto& head) { head.generation = kGenerationMax; }), "nothing");
  EXPECT_THAT(what_of([](auto& head) { head.incarnation = kMax; }), HasSubstr("incarnation"));
  EXPECT_EQ(what_of([](auto& head) { head.incarnation = kIncarnationMax; }), "nothing");
  for (const std::uint32_t ranks : {0U, kWorldSizeMax + 1}) {
    EXPECT_THAT(what_of([&](auto& head) { head.world_size = ranks; }), HasSubstr("world size")) << ranks;
  }
}

TEST(HeadCheck, ATagIsWhatCreateTakes) {
  for (const char* tag : {"a", "step-000100", "A.b_c-9", "-", "latest.1"}) EXPECT_TRUE(is_tag(tag)) << tag;
  for (const char* tag : {"", ".a", "latest", "a/b", "a b", "..", "a\n", "\xc3\xa9"}) {
    EXPECT_FALSE(is_tag(tag)) << tag;
    EXPECT_THAT(what_of([&](auto& head) { head.tag = tag; }), HasSubstr("tag")) << tag;
  }
  EXPECT_TRUE(is_tag(std::string(kTagBytesMax, 'x')));
  EXPECT_FALSE(is_tag(std::string(kTagBytesMax + 1, 'x')));
}

}  // namespace
}  // namespace kedge::commits::head_check_test

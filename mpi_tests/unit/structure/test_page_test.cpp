// Reads share/doc/tests.md against the tests. The second half breaks each rule once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/structure/project.hpp"
#include "unit/structure/test_page.hpp"

namespace kedge::structure::test_page_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TestPage the_page() { return read_test_page(read_file(kRoot / "share/doc/tests.md")); }

std::vector<DefinedTest> the_tests() { return defined_tests(read_sources({"mpi_tests"})); }

TEST(TestPageOfTheProject, NamesTestsAndPathsThatExist) {
  const TestPage page = the_page();
  ASSERT_GT(page.tests.size(), 100U);
  ASSERT_GT(the_tests().size(), 700U);
  const auto exists = [](const std::string& path) {
    return std::filesystem::exists(kRoot / "mpi_tests" / path) || std::filesystem::exists(kRoot / path);
  };
  EXPECT_THAT(missing_tests_and_paths(page, the_tests(), exists), IsEmpty());
}

TEST(TestPageOfTheProject, ExplainsTheRequirementsInNamesAndNoOthers) {
  EXPECT_THAT(requirement_problems(the_page(), the_tests()), IsEmpty());
}

// The rules can be broken --------------------------------------------------------------------------------

constexpr std::string_view kSource = "TEST(A, R1_R2_Works) { EXPECT_TRUE(x); }\n\nTEST_P(B,\n       Works) {}\n";
constexpr std::string_view kCmake = "add_test(NAME interop_R3\n  COMMAND x)\n  add_test(NAME other COMMAND y)\n";

std::vector<DefinedTest> two_files() {
  return defined_tests(
      {{"mpi_tests/unit/a_test.cpp", std::string(kSource)}, {"mpi_tests/CMakeLists.txt", std::string(kCmake)}});
}

std::vector<std::string> missing(std::string_view markdown) {
  return missing_tests_and_paths(read_test_page(markdown), two_files(),
                                 [](const std::string& path) { return path.starts_with("unit/"); });
}

TEST(TestPageRules, FindEveryFormOfTest) {
  std::vector<std::string> names;
  for (const DefinedTest& test : two_files()) names.push_back(test.name);
  EXPECT_THAT(names, ElementsAre("A.R1_R2_Works", "B.Works", "interop_R3", "other"));
}

TEST(TestPageRules, SeeATestThatIsNotThereOrNotInItsFile) {
  EXPECT_THAT(missing("`A.R1_R2_Works`, `B.*`, `A.R1_*`, `open.verify`, `B::Works`, `Level`"), IsEmpty());
  EXPECT_THAT(missing("`A.Works`"), ElementsAre(HasSubstr("no test A.Works")));
  EXPECT_THAT(missing("`A.R2_*`"), ElementsAre(HasSubstr("no test A.R2_*")));
  EXPECT_THAT(missing("`unit/a_test.cpp`: `B.Works`"), IsEmpty());
  EXPECT_THAT(missing("`unit/b_test.cpp`: `B.Works`"), ElementsAre(HasSubstr("no test B.Works in unit/b_test.cpp")));
  EXPECT_THAT(missing("```\n`A.Works`\n```\n"), IsEmpty());
}

TEST(TestPageRules, SeeAPathThatIsNotThere) {
  EXPECT_THAT(missing("`unit/` and `attic/a.cpp`"), ElementsAre(HasSubstr("attic/a.cpp does not exist")));
}

TEST(TestPageRules, SeeARequirementThatIsNotExplainedOrNotUsed) {
  const auto problems = [](std::string_view markdown) {
    return requirement_problems(read_test_page(markdown), two_files());
  };
  EXPECT_THAT(problems("| R1 | a |\n| R2 | b |\n| R3 | c |\n"), IsEmpty());
  EXPECT_THAT(problems("| R1 | a |\n| R3 | R2 |\n"), ElementsAre(HasSubstr("R2 of A.R1_R2_Works")));
  EXPECT_THAT(problems("| R1 | a |\n| R2 | b |\n| R3 | c |\n| R12 | d |\n"),
              ElementsAre(HasSubstr("R12 is explained")));
}

}  // namespace
}  // namespace kedge::structure::test_page_test

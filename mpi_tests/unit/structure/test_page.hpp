// share/doc/tests.md against the tests: what it names exists, and the numbers in their names are explained.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "unit/structure/rules.hpp"

namespace kedge::structure {

/// A test that the page names: `Suite.Name`, where a `*` at the end stands for any rest.
struct NamedTest {
  std::string name;
  std::string file;  ///< the test file named before it on the same line; empty if there is none
};

struct TestPage {
  std::vector<NamedTest> tests;
  std::vector<std::string> paths;         ///< what holds a slash
  std::vector<std::string> requirements;  ///< "R31", of the rows that begin with one
};

[[nodiscard]] TestPage read_test_page(std::string_view markdown);

/// A test as the sources define it. What CMake adds by add_test has no suite: its name alone.
struct DefinedTest {
  std::string name;  ///< "Suite.Name"
  std::string file;
};

[[nodiscard]] std::vector<DefinedTest> defined_tests(const std::vector<Source>& sources);

/// "R19" and "R32" of "CrashPoints.R19_R32_DiesAgainAndAgain".
[[nodiscard]] std::vector<std::string> requirements_of(std::string_view test);

/// What the page names and is not there. `exists` is asked with paths as the page has them.
[[nodiscard]] std::vector<std::string> missing_tests_and_paths(const TestPage& page,
                                                               const std::vector<DefinedTest>& tests,
                                                               const std::function<bool(const std::string&)>& exists);

/// Requirements that a test has in its name and the page does not explain, and the other way round.
[[nodiscard]] std::vector<std::string> requirement_problems(const TestPage& page,
                                                            const std::vector<DefinedTest>& tests);

}  // namespace kedge::structure

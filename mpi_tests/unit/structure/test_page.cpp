#include "unit/structure/test_page.hpp"

#include <algorithm>
#include <cctype>
#include <set>
#include <sstream>

#include "base/text.hpp"

namespace kedge::structure {
namespace {

bool is_word(std::string_view text) {
  return !text.empty() &&
         std::ranges::all_of(text, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; });
}

bool names_a_test(std::string_view code) {
  const auto dot = code.find('.');
  if (dot == std::string_view::npos || std::isupper(static_cast<unsigned char>(code.front())) == 0) return false;
  std::string_view name = code.substr(dot + 1);
  if (name == "*") return is_word(code.substr(0, dot));
  if (name.ends_with('*')) name.remove_suffix(1);
  return is_word(code.substr(0, dot)) && is_word(name);
}

/// "R" and digits.
bool is_requirement(std::string_view text) {
  return text.size() > 1 && text.front() == 'R' &&
         std::ranges::all_of(text.substr(1), [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; });
}

std::vector<std::string> split(std::string_view text, std::string_view separators) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (separators.find(c) == std::string_view::npos) parts.back() += c;
    else parts.emplace_back();
  }
  return parts;
}

void read_line(const std::string& line, TestPage& page) {
  const auto cells = split(line, "| ");
  if (line.starts_with("| ") && is_requirement(cells[2])) page.requirements.push_back(cells[2]);
  std::string file;
  const auto parts = split(line, "`");
  for (std::size_t i = 1; i < parts.size(); i += 2) {  // every other part is code
    const std::string& code = parts[i];
    if (code.find('/') != std::string::npos) {
      page.paths.push_back(code);
      if (code.ends_with("_test.cpp")) file = code;
    } else if (!code.empty() && names_a_test(code)) {
      page.tests.push_back({code, file});
    }
  }
}

/// The words behind each `begin` up to the closing parenthesis.
std::vector<std::vector<std::string>> arguments_of(std::string_view text, std::string_view begin) {
  std::vector<std::vector<std::string>> found;
  for (auto at = text.find(begin); at != std::string_view::npos; at = text.find(begin, at + 1)) {
    if (at != 0 && text[at - 1] != '\n') continue;
    const auto from = at + begin.size();
    std::vector<std::string> words;
    for (std::string& word : split(text.substr(from, text.find(')', from) - from), ", \n")) {
      if (!word.empty()) words.push_back(std::move(word));
    }
    found.push_back(std::move(words));
  }
  return found;
}

bool matches(const std::string& name, const std::string& wanted) {
  return wanted.ends_with('*') ? name.starts_with(wanted.substr(0, wanted.size() - 1)) : name == wanted;
}

}  // namespace

TestPage read_test_page(std::string_view markdown) {
  TestPage page;
  bool fenced = false;
  std::istringstream lines{std::string(markdown)};
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("```")) fenced = !fenced;
    else if (!fenced) read_line(line, page);
  }
  return page;
}

std::vector<DefinedTest> defined_tests(const std::vector<Source>& sources) {
  std::vector<DefinedTest> tests;
  for (const Source& source : sources) {
    if (source.path.ends_with(".cpp")) {
      for (const std::string_view macro : {"TEST(", "TEST_F(", "TEST_P("}) {
        for (const auto& words : arguments_of(source.text, macro)) {
          if (words.size() >= 2) tests.push_back({compose("{}.{}", words[0], words[1]), source.path});
        }
      }
    } else if (source.path.ends_with("CMakeLists.txt")) {
      for (const std::string_view command : {"add_test(NAME ", "  add_test(NAME "}) {
        for (const auto& words : arguments_of(source.text, command)) {
          if (!words.empty()) tests.push_back({words[0], source.path});
        }
      }
    }
  }
  return tests;
}

std::vector<std::string> requirements_of(std::string_view test) {
  std::vector<std::string> found;
  for (std::string& word : split(test, "._")) {
    if (is_requirement(word)) found.push_back(std::move(word));
  }
  return found;
}

std::vector<std::string> missing_tests_and_paths(const TestPage& page, const std::vector<DefinedTest>& tests,
                                                 const std::function<bool(const std::string&)>& exists) {
  std::vector<std::string> problems;
  for (const std::string& path : page.paths) {
    if (!exists(path)) problems.push_back(path + " does not exist");
  }
  for (const NamedTest& named : page.tests) {
    const bool found = std::ranges::any_of(tests, [&](const DefinedTest& test) {
      return matches(test.name, named.name) && test.file.ends_with(named.file);
    });
    if (!found) problems.push_back(compose("there is no test {} in {}", named.name, named.file));
  }
  return problems;
}

std::vector<std::string> requirement_problems(const TestPage& page, const std::vector<DefinedTest>& tests) {
  const std::set<std::string> explained(page.requirements.begin(), page.requirements.end());
  std::set<std::string> used;
  std::vector<std::string> problems;
  for (const DefinedTest& test : tests) {
    for (const std::string& requirement : requirements_of(test.name)) {
      if (used.insert(requirement).second && !explained.contains(requirement)) {
        problems.push_back(compose("{} of {} is not explained", requirement, test.name));
      }
    }
  }
  for (const std::string& requirement : explained) {
    if (!used.contains(requirement)) problems.push_back(requirement + " is explained and in no test's name");
  }
  return problems;
}

}  // namespace kedge::structure

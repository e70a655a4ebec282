// The log: its levels, its sink, and lines and errors that can be printed whatever bytes the names in them have.
#include "base/log.hpp"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "kedge/error.hpp"

namespace kedge::log_test {
namespace {

TEST(Log, GoesToTheSinkFromItsLevelOn) {
  std::vector<std::string> lines;
  Options::Log options;
  options.level = LogLevel::warning;
  options.sink = [&](LogLevel level, std::string_view text) {
    lines.push_back(std::to_string(static_cast<int>(level)) + std::string(text));
  };
  const Log log(options);
  log.debug("a");
  log.info("b");
  log.warning("c {} %v");
  log.error("d");
  EXPECT_EQ(lines, (std::vector<std::string>{"2c {} %v", "3d"}));
  EXPECT_FALSE(log.is_enabled(LogLevel::info));
  EXPECT_TRUE(log.is_enabled(LogLevel::error));
}

TEST(Log, WithoutASinkGoesToStandardError) {
  testing::internal::CaptureStderr();
  const Log log{Options::Log{}};
  log.debug("hidden");
  log.info("commit {} took 1 s");  // braces of a tag's name are no format
  log.warning("the store is almost full");
  log.error("no");
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "[kedge] commit {} took 1 s\n[kedge] warning: the store is almost full\n[kedge] error: no\n");
}

TEST(Log, LinesAndErrorsCanBeReadWhateverTheNamesInThem) {
  std::vector<std::string> lines;
  Options::Log options;
  options.sink = [&](LogLevel, std::string_view text) { lines.emplace_back(text); };
  const std::string name{'a', '\0', '\xe4', '\x1b'};
  Log(options).warning(name + " one\nand two");
  EXPECT_EQ(lines, std::vector<std::string>{"a\\x00\\xe4\\x1b one\nand two"});
  const Error error(Failure{ErrorCode::io, "cannot write " + name, 1, name, 0});
  EXPECT_STREQ(error.what(), "io on rank 1: cannot write a\\x00\\xe4\\x1b (a\\x00\\xe4\\x1b)");
  EXPECT_EQ(error.failure().path, name) << "as the system takes it";
}

TEST(Log, OffIsOff) {
  testing::internal::CaptureStderr();
  Options::Log options;
  options.level = LogLevel::off;
  const Log log(options);
  log.error("no");
  log.write(LogLevel::off, "no");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(Log, SurvivesASinkThatThrows) {
  Options::Log options;
  options.sink = [](LogLevel, std::string_view) { throw std::runtime_error("against its contract"); };
  EXPECT_NO_THROW(Log(options).error("x"));
}

}  // namespace
}  // namespace kedge::log_test

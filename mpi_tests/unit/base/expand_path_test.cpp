// ~, {node} and variables of the environment in paths, from the file and the environment; names in braces that nothing
// replaces are refused.
#include "base/expand_path.hpp"

#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/options_fields.hpp"
#include "base/options_load.hpp"

namespace kedge::expand_path_test {
namespace {

using testing::HasSubstr;

struct ExpandPath : testing::Test {
  void SetUp() override { std::filesystem::create_directories(directory); }
  void TearDown() override { std::filesystem::remove_all(directory); }
  /// With HOME, SCRATCH and this variable.
  [[nodiscard]] Options load(const std::string& variable) const {
    return load_options({"HOME=/home/me", "SCRATCH=/scratch", variable}, directory).options;
  }
  [[nodiscard]] static std::string failure_of(const Options& options) {
    return options.load_failure ? options.load_failure->message : "no failure";
  }
  std::string directory = testing::TempDir() + "kedge-expand-" + std::to_string(::getpid());
};

TEST_F(ExpandPath, HomeAndVariables) {
  EXPECT_EQ(load("KEDGE_PERSISTENT_PATH=~/kept").persistent.path, "/home/me/kept");
  EXPECT_EQ(load("KEDGE_PERSISTENT_PATH=~").persistent.path, "/home/me");
  EXPECT_EQ(load("KEDGE_EVENTS_PATH=$SCRATCH/$HOME/x").events.path, "/scratch//home/me/x");
  EXPECT_EQ(load("KEDGE_STORE_PATH=${SCRATCH}s/{node}").store.path, "/scratchs/{node}");
  EXPECT_EQ(load("KEDGE_STORE_PATH=/a~b/$/$1/x$").store.path, "/a~b/$/$1/x$") << "nothing to expand";
}

TEST_F(ExpandPath, InTheFile) {
  std::ofstream(directory + "/kedge.toml") << "[persistent]\npath = '$SCRATCH/kept'\n";
  EXPECT_EQ(load("").persistent.path, "/scratch/kept");
  EXPECT_THAT(failure_of(load_options({"HOME=/home/me"}, directory).options),
              HasSubstr("kedge.toml:2: persistent.path: the path $SCRATCH/kept needs the environment variable SCRATCH, "
                        "which is not set"));
}

TEST_F(ExpandPath, NamesInBracesThatNothingReplacesAreRefused) {
  EXPECT_THAT(failure_of(load("KEDGE_STORE_PATH=/s/{run}/{node}")),
              testing::AllOf(HasSubstr("store.path"), HasSubstr("no names in braces but {node}"),
                             HasSubstr("each run has a directory of its own there")));
  for (const char* wrong : {"KEDGE_STORE_PATH=/s/{host}", "KEDGE_PERSISTENT_PATH=/p/{run}",
                            "KEDGE_PERSISTENT_PATH=/p/{node}", "KEDGE_EVENTS_PATH=/e/{rank}"}) {
    EXPECT_THAT(failure_of(load(wrong)), HasSubstr("names in braces")) << wrong;
  }
  for (const char* right : {"KEDGE_STORE_PATH=/s/{node}/{node}", "KEDGE_EVENTS_PATH=/e/{run}-{node}-{user}-{job}",
                            "KEDGE_PERSISTENT_PATH=/p/{}{a b}{", "KEDGE_STORE_PATH=/s/{1}"}) {
    EXPECT_EQ(failure_of(load(right)), "no failure") << right;
  }
}

TEST_F(ExpandPath, AnotherUsersHomeIsRefused) {
  EXPECT_THAT(failure_of(load("KEDGE_PERSISTENT_PATH=~you/kept")), HasSubstr("another user's home directory"));
}

TEST_F(ExpandPath, WhatAProgramSetsItMustExpandItself) {
  Options options;
  for (const std::string text : {"~/kept", "/a/$SCRATCH", "${SCRATCH}"}) {
    options.persistent.path = text;
    const auto refused = check_options(options);
    ASSERT_TRUE(refused) << text;
    EXPECT_THAT(refused->message, HasSubstr("expand them in the program"));
  }
}

}  // namespace
}  // namespace kedge::expand_path_test

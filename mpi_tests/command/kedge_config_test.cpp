// kedge config: every option, its value and its origin; a bad value is named with file and line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/options_fields.hpp"
#include "base/text.hpp"
#include "command/kedge_program.hpp"
#include "harness/sample_store.hpp"

namespace kedge::testing::kedge_config_test {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

class KedgeConfig : public ::testing::Test {
 protected:
  void write(const std::string& text) const { std::ofstream(store_.path("kedge.toml")) << text; }
  [[nodiscard]] Result config(const std::string& words = {}, const std::string& variables = {}) const {
    return kedge_in(store_.directory(), "config " + words, variables);
  }
  SampleStore store_;
};

TEST_F(KedgeConfig, ListsEveryOptionWithItsDefault) {
  const Result result = config();
  EXPECT_EQ(result.status, 0) << result.text;
  for (const OptionField& field : option_fields()) {
    EXPECT_THAT(result.text, ContainsRegex(compose("\n{} +[^ ]+ +default\n", dotted_name(field))));
  }
}

TEST_F(KedgeConfig, SaysWhichLineOrVariableAValueIsFrom) {
  write("run = \"heat\"\n\n[store]\nkeep = 3\ndurable = true\n[persistent]\nevery = 5\n");
  const Result result = config("", "KEDGE_PERSISTENT_EVERY=7 KEDGE_STORE_QUOTA_BYTES=2GiB");
  EXPECT_THAT(result.text,
              AllOf(ContainsRegex("run +\"heat\" +kedge.toml:1\n"), ContainsRegex("store.keep +3 +kedge.toml:4\n"),
                    ContainsRegex("persistent.every +7 +KEDGE_PERSISTENT_EVERY\n"),
                    ContainsRegex("store.quota_bytes +[0-9a-zA-Z ]+ +KEDGE_STORE_QUOTA_BYTES\n")));
}

TEST_F(KedgeConfig, JsonHasNumbersAsNumbersAndListsAsLists) {
  write("fingerprint_files = [\"deck.in\", \"a mesh\"]\n[store]\nkeep = 3\ndurable = true\n");
  const Json options = Json::parse(config("--json", "KEDGE_STORE_QUOTA_BYTES=2GiB").text)["options"];
  EXPECT_EQ(options.size(), option_fields().size());
  EXPECT_EQ(options["store.keep"]["value"], 3);
  EXPECT_EQ(options["store.keep"]["from"], "kedge.toml:3");
  EXPECT_EQ(options["fingerprint_files"]["value"], (Json{"deck.in", "a mesh"}));
  EXPECT_EQ(options["store.durable"]["value"], true);
  EXPECT_EQ(options["store.quota_bytes"]["value"], std::uint64_t{2} << 30U);
  EXPECT_EQ(options["run"]["value"], "");
  EXPECT_EQ(options["comm.timeout_s"]["value"], 300.0);
  EXPECT_EQ(options["persistent.trust"]["from"], "default");
}

TEST_F(KedgeConfig, AWrongValueIsStatusTwoAndNamed) {
  write("[store]\nkeep = 0\n");
  const Result wrong = config();
  EXPECT_EQ(wrong.status, 2);
  EXPECT_THAT(wrong.text, AllOf(HasSubstr("kedge.toml:2"), HasSubstr("store.keep must be")));
  write("[store]\nkep = 1\n");
  EXPECT_THAT(config().text, HasSubstr("did you mean store.keep?"));
  write("");
  const Result variable = config("", "KEDGE_PERSISTENT_TRUST=everybody");
  EXPECT_EQ(variable.status, 2);
  EXPECT_THAT(variable.text, HasSubstr("KEDGE_PERSISTENT_TRUST"));
}

}  // namespace
}  // namespace kedge::testing::kedge_config_test

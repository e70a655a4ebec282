// The command where a prefix, a store, an output directory or a routed file has a space in its name: commands that it
// prints can be pasted.
#include <filesystem>
#include <fstream>

#include "base/text.hpp"
#include "command/checkpoints_fixture.hpp"
#include "kedge/kedge.hpp"
#include "kedge/testing/in_process_job.hpp"

namespace kedge::testing::kedge_spaces_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class KedgeSpaces : public ::testing::Test {
 protected:
  KedgeSpaces() {
    std::filesystem::create_directory(spaced_);
    for (const unsigned generation : {1U, 2U}) write_checkpoint(spaced_, sample_entry(generation));
  }
  /// Each form that names the newest checkpoint, or all, as a shell passes it.
  [[nodiscard]] std::vector<std::string> newest() const {
    const std::string directory = spaced_ + "/" + sample_entry(2).directory;
    return {"step-000200 --prefix " + shell_word(spaced_), "latest --prefix " + shell_word(spaced_),
            "step-000200 --prefix=" + shell_word(spaced_), shell_word(directory),
            shell_word(directory + "/checkpoint.h5")};
  }

  SamplePrefix place_;
  std::string spaced_ = place_.path("my check points");
};

TEST_F(KedgeSpaces, LsShowAndVerifyOfAPrefix) {
  const Result listed = kedge("ls " + shell_word(spaced_));
  EXPECT_EQ(listed.status, 0) << listed.text;
  EXPECT_THAT(listed.text, AllOf(HasSubstr("step-000100"), HasSubstr("step-000200")));
  EXPECT_EQ(kedge_json("ls " + shell_word(spaced_), 0)["path"], spaced_);
  EXPECT_EQ(kedge("ls --tags " + shell_word(spaced_)).text, "step-000200\nstep-000100\n");
  EXPECT_EQ(kedge_in(spaced_, "ls --tags '../my check points'").text, "step-000200\nstep-000100\n");
  for (const std::string& words : newest()) {
    const Result shown = kedge("show " + words);
    EXPECT_EQ(shown.status, 0) << words << "\n" << shown.text;
    EXPECT_THAT(shown.text, AllOf(HasSubstr("temperature"), HasSubstr("step-000200"))) << words;
    const Result verified = kedge("verify " + words);
    EXPECT_EQ(verified.status, 0) << words << "\n" << verified.text;
  }
  EXPECT_EQ(kedge("verify " + shell_word(spaced_)).status, 0);
  EXPECT_EQ(kedge_in("/", "ls --tags", "KEDGE_PERSISTENT_PATH=" + shell_word(spaced_)).text,
            "step-000200\nstep-000100\n");
}

TEST_F(KedgeSpaces, DamageIsFoundAndThePathIsWhole) {
  const std::string path = spaced_ + "/" + sample_entry(2).directory + "/data/0/rank-1.h5";
  flip_bit(path, 5000);
  for (const std::string& words : newest()) {
    const Result verified = kedge("verify " + words);
    EXPECT_EQ(verified.status, 1) << words << "\n" << verified.text;
    EXPECT_THAT(verified.text, HasSubstr("rank-1.h5")) << words;
  }
  EXPECT_THAT(kedge("show " + shell_word(spaced_ + "/nothing here")).text, HasSubstr(spaced_ + "/nothing here"));
}

/// Of the files that a rank routes.
std::vector<std::string> names_of(int rank) { return {compose("out put/restart. {}", rank), "my log"}; }

class KedgeSpacesExtract : public KedgeSpaces {
 protected:
  KedgeSpacesExtract() {
    Options options;
    options.run = "files";
    options.store.path = place_.path("my stores");
    options.persistent.path = spaced_;
    options.persistent.every = 1;
    options.log.level = LogLevel::off;
    InProcessJob job(2, options);
    for (const auto& outcome : job.start([&](Engine&engine, Communicator&communicator) {
           engine.create("a");
           for (const std::string& name : names_of(communicator.rank())) {
             std::ofstream(engine.route_out(name).path) << name;
           }
           engine.commit();
           engine.finalize();
         })) {
      EXPECT_TRUE(outcome.returned()) << (outcome.failure ? to_string(*outcome.failure) : "died");
    }
  }
  [[nodiscard]] Result extract(const std::string& words) const {
    return kedge("extract a --prefix " + shell_word(spaced_) + " -o " + shell_word(output_) + " " + words);
  }
  [[nodiscard]] std::string text_of(const std::string& name) const {
    std::ifstream file(output_ + "/" + name);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  [[nodiscard]] std::size_t files() const {
    std::size_t count = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(output_)) {
      if (entry.is_regular_file()) ++count;
    }
    return count;
  }
  std::string output_ = place_.path("to here/and there");
};

TEST_F(KedgeSpacesExtract, AllFilesToADirectoryWithSpaces) {
  const Result result = extract("");
  EXPECT_EQ(result.status, 0) << result.text;
  EXPECT_THAT(result.text, HasSubstr(output_));
  EXPECT_EQ(files(), 4U);
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(text_of(compose("out put/restart. {}", rank)), compose("out put/restart. {}", rank));
    EXPECT_EQ(text_of(compose("rank-{}/my log", rank)), "my log");
  }
}

TEST_F(KedgeSpacesExtract, OneFileOrDirectoryByName) {
  EXPECT_EQ(extract("'out put/restart. 1'").status, 0);
  EXPECT_EQ(files(), 1U);
  EXPECT_EQ(text_of("out put/restart. 1"), "out put/restart. 1");
  EXPECT_EQ(extract("'out put/' --force").status, 0);
  EXPECT_EQ(files(), 2U);
  EXPECT_EQ(extract("'my log' --rank 0").status, 0);
  EXPECT_EQ(text_of("rank-0/my log"), "my log");
  const Result unknown = extract("'my lag'");
  EXPECT_EQ(unknown.status, 2);
  EXPECT_THAT(unknown.text, HasSubstr("did you mean 'my log'?"));
}

TEST_F(KedgeSpacesExtract, TheStoreIsListedAndFreed) {
  const std::string stores = place_.path("my stores");
  EXPECT_THAT(kedge("ls " + shell_word(stores) + "/kedge-*").text, HasSubstr("2 of 2"));
  const Result dropped = kedge("drop --yes " + shell_word(stores) + "/kedge-*");
  EXPECT_EQ(dropped.status, 0) << dropped.text;
  EXPECT_THAT(dropped.text, HasSubstr("freed " + stores + "/kedge-"));
  EXPECT_TRUE(std::filesystem::is_empty(stores));
}

}  // namespace
}  // namespace kedge::testing::kedge_spaces_test

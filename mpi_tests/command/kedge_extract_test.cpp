// kedge extract on checkpoints of a job that routed files.
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include "base/text.hpp"
#include "command/checkpoints_fixture.hpp"
#include "kedge/kedge.hpp"
#include "kedge/testing/in_process_job.hpp"

namespace kedge::testing::kedge_extract_test {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string content_of(int rank, std::size_t size_bytes) {
  std::string content(size_bytes, '\0');
  for (std::size_t i = 0; i < size_bytes; ++i)
    content[i] = static_cast<char>(i * 7 + i / 4099 + static_cast<unsigned>(rank));
  return content;
}

std::string read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write(const std::string& path, const std::string& content) { std::ofstream(path, std::ios::binary) << content; }

class KedgeExtract : public ::testing::Test {
 protected:
  KedgeExtract() {
    options_.run = "files";
    options_.store.path = place_.path("store");
    options_.persistent.path = place_.path("prefix");
    options_.persistent.every = 1;
    options_.log.level = LogLevel::warning;
  }

  using Files = std::map<std::string, std::string>;
  /// Each rank routes what `files` says, and saves a region "step".
  void commit(const std::string& tag, int ranks, const std::function<Files(int rank)>& files) {
    InProcessJob job(ranks, options_);
    for (const auto& outcome : job.start([&](Engine&engine, Communicator&communicator) {
           engine.create(tag);
           const std::int64_t step = 3;
           engine.save("step", {&step, DataType::int64, {}});
           for (const auto& [name, content] : files(communicator.rank())) {
             const Routed out = engine.route_out(name);
             ASSERT_TRUE(out.status.ok());
             write(out.path, content);
           }
           engine.commit();
           engine.finalize();
         })) {
      ASSERT_TRUE(outcome.returned()) << (outcome.failure ? to_string(*outcome.failure) : "died");
    }
  }
  /// "restart.<r>" and a large file of one name on each rank, a log on rank 0.
  void commit_usual() {
    commit("a", 3, [](int rank) {
      Files files{{compose("out/restart.{}", rank), content_of(rank, 1000)}, {"model.pt", content_of(rank, 5'000'000)}};
      if (rank == 0) files["log"] = "";
      return files;
    });
  }
  [[nodiscard]] Result extract(const std::string& words) const {
    return kedge("extract " + words + " --prefix " + place_.path("prefix") + " -o " + out_);
  }
  [[nodiscard]] std::vector<std::string> extracted() const {
    std::vector<std::string> files;
    if (!std::filesystem::exists(out_)) return files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(out_)) {
      if (!entry.is_directory()) files.push_back(std::filesystem::relative(entry.path(), out_));
    }
    std::ranges::sort(files);
    return files;
  }
  [[nodiscard]] std::string container(int rank) const {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(place_.path("prefix"))) {
      if (entry.path().filename() == compose("rank-{}.h5", rank)) return entry.path();
    }
    return {};
  }
  /// Flips a byte of `name`'s content in the container of this rank.
  void damage(int rank, const std::string& content) const {
    const std::string path = container(rank);
    const std::size_t at = read(path).find(content.substr(0, 500));
    ASSERT_NE(at, std::string::npos);
    flip_bit(path, at + content.size() - 1);
  }

  SampleStore place_;
  Options options_;
  std::string out_ = place_.path("out/deep");
};

TEST_F(KedgeExtract, WritesAllFilesByRankWhereSeveralHaveTheName) {
  commit_usual();
  const Result result = extract("a");
  EXPECT_EQ(result.status, 0) << result.text;
  EXPECT_THAT(extracted(), ElementsAre("log", "out/restart.0", "out/restart.1", "out/restart.2", "rank-0/model.pt",
                                       "rank-1/model.pt", "rank-2/model.pt"));
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(read(out_ + compose("/out/restart.{}", rank)), content_of(rank, 1000));
    EXPECT_EQ(read(out_ + compose("/rank-{}/model.pt", rank)), content_of(rank, 5'000'000));
  }
  EXPECT_THAT(result.text, AllOf(ContainsRegex("rank-2/model.pt +2 +5000000\n"), ContainsRegex("log +0 +0\n"),
                                 HasSubstr("7 files, 14.3 MiB, in ")));
  struct stat info {};
  ::stat((out_ + "/log").c_str(), &info);
  const mode_t mask = ::umask(0);
  ::umask(mask);
  EXPECT_EQ(info.st_mode & 0777U, 0666U & ~mask);
}

TEST_F(KedgeExtract, ByNameDirectoryAndRank) {
  commit_usual();
  EXPECT_EQ(extract("a log out/restart.2").status, 0);
  EXPECT_THAT(extracted(), ElementsAre("log", "out/restart.2"));
  std::filesystem::remove_all(out_);
  EXPECT_EQ(extract("latest out/").status, 0);
  EXPECT_THAT(extracted(), ElementsAre("out/restart.0", "out/restart.1", "out/restart.2"));
  std::filesystem::remove_all(out_);
  EXPECT_EQ(extract("a --rank 1").status, 0);
  EXPECT_THAT(extracted(), ElementsAre("out/restart.1", "rank-1/model.pt")) << "where it always goes";
  std::filesystem::remove_all(out_);
  EXPECT_EQ(kedge("extract " + container(1) + " --output " + out_ + " model.pt").status, 0);
  EXPECT_EQ(read(out_ + "/model.pt"), content_of(1, 5'000'000));
}

TEST_F(KedgeExtract, FromAContainerOfAStore) {
  commit_usual();
  for (const auto& entry : std::filesystem::recursive_directory_iterator(options_.store.path)) {
    if (!entry.path().filename().string().starts_with("rank-2.")) continue;
    const Result result = kedge("extract '" + entry.path().string() + "' --output " + out_);
    EXPECT_EQ(result.status, 0) << result.text;
    EXPECT_THAT(extracted(), ElementsAre("model.pt", "out/restart.2"));
    const Result store = kedge("extract '" + entry.path().parent_path().string() + "'");
    EXPECT_EQ(store.status, 2);
    EXPECT_THAT(store.text, HasSubstr("one of the containers in this directory"));
    return;
  }
  ADD_FAILURE() << "no container in the store";
}

TEST_F(KedgeExtract, NamesThatCannotLieBesideEachOtherGoByRank) {
  commit("a", 2, [](int rank) {
    return rank == 0 ? Files{{"out", "a file"}, {"x", "x"}} : Files{{"out/restart", "below it"}};
  });
  EXPECT_EQ(extract("a").status, 0);
  EXPECT_THAT(extracted(), ElementsAre("rank-0/out", "rank-0/x", "rank-1/out/restart"));
}

TEST_F(KedgeExtract, ARankDirectoryOfTheApplicationsOwnDoesNotMix) {
  commit("a", 2, [](int rank) { return rank == 0 ? Files{{"rank-1/x", "rank 0's"}, {"x", "0"}} : Files{{"x", "1"}}; });
  EXPECT_EQ(extract("a").status, 0);
  EXPECT_THAT(extracted(), ElementsAre("rank-0/rank-1/x", "rank-0/x", "rank-1/x"));
  EXPECT_EQ(read(out_ + "/rank-1/x"), "1");
}

TEST_F(KedgeExtract, NothingIsReplacedUnlessForced) {
  commit_usual();
  std::filesystem::create_directories(out_ + "/out");
  write(out_ + "/out/restart.1", "mine");
  const Result refused = extract("a");
  EXPECT_EQ(refused.status, 2);
  EXPECT_THAT(refused.text, AllOf(HasSubstr("out/restart.1"), HasSubstr("--force")));
  EXPECT_THAT(extracted(), ElementsAre("out/restart.1")) << "nothing at all is written";
  EXPECT_EQ(read(out_ + "/out/restart.1"), "mine");
  EXPECT_EQ(extract("a --force").status, 0);
  EXPECT_EQ(read(out_ + "/out/restart.1"), content_of(1, 1000));
  std::filesystem::remove(out_ + "/log");
  std::filesystem::create_directory(out_ + "/log");
  EXPECT_THAT(extract("a --force").text, HasSubstr("a directory is in the place of a file"));
}

TEST_F(KedgeExtract, LinksOnTheWayAreNotFollowed) {
  commit_usual();
  std::filesystem::create_directories(place_.path("elsewhere"));
  std::filesystem::create_directories(out_);
  std::filesystem::create_directory_symlink(place_.path("elsewhere"), out_ + "/out");
  const Result refused = extract("a --force");
  EXPECT_EQ(refused.status, 2);
  EXPECT_THAT(refused.text, AllOf(HasSubstr("symbolic link"), HasSubstr("not followed")));
  EXPECT_TRUE(std::filesystem::is_empty(place_.path("elsewhere")));
  std::filesystem::remove(out_ + "/out");

  write(place_.path("elsewhere/target"), "mine");
  std::filesystem::create_symlink(place_.path("elsewhere/target"), out_ + "/log");
  EXPECT_EQ(extract("a log").status, 2);
  EXPECT_EQ(extract("a log --force").status, 0) << "the link itself is replaced";
  EXPECT_EQ(read(place_.path("elsewhere/target")), "mine");
  EXPECT_FALSE(std::filesystem::is_symlink(out_ + "/log"));
}

TEST_F(KedgeExtract, ADamagedFileIsReportedAndNotWrittenTheOthersAre) {
  commit_usual();
  damage(1, content_of(1, 5'000'000));
  const Result result = extract("a");
  EXPECT_EQ(result.status, 1) << result.text;
  EXPECT_THAT(result.text, AllOf(HasSubstr("rank-1/model.pt"), HasSubstr("its checksum is wrong")));
  EXPECT_THAT(extracted(), ElementsAre("log", "out/restart.0", "out/restart.1", "out/restart.2", "rank-0/model.pt",
                                       "rank-2/model.pt"))
      << "and nothing half written";
  write(out_ + "/rank-1/model.pt", "the one before");
  EXPECT_EQ(extract("a model.pt --rank 1 --force").status, 1);
  EXPECT_EQ(read(out_ + "/rank-1/model.pt"), "the one before") << "replaced only by what is good";
}

TEST_F(KedgeExtract, AMissingContainerCostsItsFilesAlone) {
  commit_usual();
  std::filesystem::remove(container(2));
  const Result result = extract("a");
  EXPECT_EQ(result.status, 1) << result.text;
  EXPECT_THAT(result.text, AllOf(HasSubstr("the container of rank 2"), HasSubstr("missing")));
  EXPECT_THAT(extracted(), ElementsAre("rank-0/log", "rank-0/model.pt", "rank-0/out/restart.0", "rank-1/model.pt",
                                       "rank-1/out/restart.1"))
      << "the missing rank may have files of any of these names";
  const Result one = extract("a out/restart.2 --force");
  EXPECT_EQ(one.status, 1);
  EXPECT_THAT(one.text, HasSubstr("it may be in a container that could not be read"));
}

TEST_F(KedgeExtract, WhatIsNotARoutedFileIsRefusedInWords) {
  commit_usual();
  const auto refused = [&](const std::string& words, const std::string& why) {
    const Result result = extract(words);
    EXPECT_EQ(result.status, 2) << words;
    EXPECT_THAT(result.text, HasSubstr(why)) << words;
    EXPECT_THAT(extracted(), IsEmpty());
  };
  refused("a step", "saved from memory and is not a file");
  refused("a modl.pt", "did you mean 'model.pt'?");
  refused("a out/restart.2 --rank 1", "there is no routed file 'out/restart.2' of rank 1");
  refused("a ../out", "there is no routed file");
  refused("a --rank 7", "has no routed files");
  refused("b", "no checkpoint on");
  EXPECT_EQ(kedge("extract").status, 2);
  EXPECT_EQ(kedge("extract " + place_.path("nothing/x.h5")).status, 2);
  commit("memory", 1, [](int) { return Files{}; });
  refused("memory", "has no routed files");
}

TEST_F(KedgeExtract, ANameMayBeInAContainerThatCannotBeRead) {
  commit_usual();
  const std::string path = container(1);
  std::filesystem::remove(path);
  std::filesystem::create_directory(path);
  const Result result = extract("a out/restart.1");
  EXPECT_NE(result.status, 0);
  EXPECT_THAT(result.text, HasSubstr("it may be in a container that could not be read"));
}

TEST_F(KedgeExtract, AnOutputThatCannotBeWrittenToIsSaid) {
  commit_usual();
  write(place_.path("out"), "a file");
  const Result result = extract("a");
  EXPECT_EQ(result.status, 2);
  EXPECT_THAT(result.text, HasSubstr(place_.path("out")));
}

TEST_F(KedgeExtract, TellsInJson) {
  commit_usual();
  damage(0, content_of(0, 1000));
  const Json told = kedge_json("extract a out model.pt --prefix " + place_.path("prefix") + " --output " + out_, 1);
  EXPECT_EQ(told["output"], out_);
  EXPECT_EQ(told["files"].size(), 5U);
  EXPECT_THAT(
      told["files"],
      ::testing::Contains(Json{{"file", "rank-1/model.pt"}, {"name", "model.pt"}, {"rank", 1}, {"bytes", 5'000'000}}));
  EXPECT_EQ(told["bytes"], 3 * 5'000'000 + 2 * 1000);
  ASSERT_EQ(told["problems"].size(), 1U);
  EXPECT_EQ(told["problems"][0]["what"], "out/restart.0");
  EXPECT_EQ(told["problems"][0]["damaged"], true);
}

}  // namespace
}  // namespace kedge::testing::kedge_extract_test

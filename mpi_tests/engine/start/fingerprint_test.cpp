// Another input in the same place does not continue from the checkpoints of the first.
#include <functional>
#include <utility>
#include <vector>

#include "base/text.hpp"
#include "engine/start/right_run.hpp"

namespace kedge::faults::fingerprint_test {
namespace {

class Fingerprints : public RightRun {
 protected:
  void give(const std::string& text) { job.options.fingerprint = text; }
  void write(const std::string& path, std::string_view text) {
    job.disk.write_all(path, std::as_bytes(std::span(text)));
  }
  /// Three files of input, which the job names.
  void give_files() {
    job.options.fingerprint_files = {"/inputs/plate.nml", "/inputs/mesh", "/inputs/forcing"};
    job.disk.make_directories("/inputs", 0755);
    for (const std::string& path : job.options.fingerprint_files) write(path, "content of " + path);
  }
};

TEST_F(Fingerprints, AnotherInputInTheSameDirectoryIsRefusedWithBothNamesAndTheWaysOn) {
  give("plate 384 x 512");
  commit_steps(job, {{"a", 1}});
  EXPECT_EQ(reopen(job).step, 1);
  give("plate 100 x 100");
  const auto failure = expect_refused(ErrorCode::mismatch);
  EXPECT_TRUE(says(failure.message,
                   {"plate 384 x 512", "plate 100 x 100", "KEDGE_RUN", "another directory", "KEDGE_START=accept"}))
      << failure.message;
  job.options.run = "small";
  EXPECT_EQ(reopen(job, latest, Newer::keep, {{"b", 2}}).tag, std::nullopt);
  EXPECT_EQ(reopen(job).step, 2);
}

TEST_F(Fingerprints, AnAcceptedOneIsRecordedInItsPlace) {
  give("one");
  commit_steps(job, {{"a", 1}});
  give("two");
  job.options.start = StartMode::accept;
  EXPECT_EQ(reopen(job).step, 1);
  job.options.start = StartMode::continue_;
  EXPECT_EQ(reopen(job).step, 1);
  give("one");
  (void)expect_refused(ErrorCode::mismatch);
}

TEST_F(Fingerprints, AreComparedOnlyWhereBothAreGivenAndCommitsExist) {
  give("one");
  reopen(job);
  give("two");
  commit_steps(job, {{"a", 1}});
  give("");
  EXPECT_EQ(reopen(job).step, 1);
  give("three");
  (void)expect_refused(ErrorCode::mismatch);
  job.options.start = StartMode::fresh;
  EXPECT_EQ(reopen(job, latest, Newer::keep, {{"b", 2}}).tag, std::nullopt);
  job.options.start = StartMode::continue_;
  EXPECT_EQ(reopen(job).step, 2);
  give("two");
  (void)expect_refused(ErrorCode::mismatch);
}

TEST_F(Fingerprints, ARunThatHadNoneTakesTheFirstThatIsGiven) {
  commit_steps(job, {{"a", 1}});
  give("one");
  EXPECT_EQ(reopen(job).step, 1);
  give("two");
  (void)expect_refused(ErrorCode::mismatch);
}

/// A first commit that a start finds has its input on record, wherever the one that made it died.
TEST_F(Fingerprints, AreRecordedBeforeThereIsACommit) {
  give("one");
  const auto before = job.disk.snapshot();
  commit_steps(job, {{"a", 1}});
  const auto operations = job.operations;
  int refused = 0;
  for (std::uint64_t n = 1; n <= operations[0]; ++n) {
    SCOPED_TRACE(compose("rank 0 dies in operation {}", n));
    job.disk.restore(before);
    give("one");
    job.disk.stop_world_after(0, n, n);
    job.start([](RankScope& scope) {
      Engine engine = scope.make_engine();
      commit_step(engine, scope.rank, "a", 1);
    });
    give("two");
    const Opened opened = reopen(job);
    if (opened.failure) {
      EXPECT_EQ(opened.failure->code, ErrorCode::mismatch) << to_string(*opened.failure);
      ++refused;
    }
    EXPECT_EQ(opened.tag, std::nullopt);
  }
  EXPECT_GT(refused, 3);
}

TEST_F(Fingerprints, AFreshStartThatDiesAnywhereLeavesNoRunWithAnothersInput) {
  give("one");
  commit_steps(job, {{"a", 1}});
  const auto before = job.disk.snapshot();
  give("two");
  job.options.start = StartMode::fresh;
  reopen(job);
  const auto operations = job.operations;
  for (std::uint64_t n = 1; n <= operations[0]; ++n) {
    SCOPED_TRACE(compose("rank 0 dies in operation {}", n));
    job.disk.restore(before);
    job.options.start = StartMode::fresh;
    job.disk.stop_world_after(0, n, n);
    job.start([](RankScope& scope) {
      try {
        const Engine engine = scope.make_engine();
      } catch (const Error&) {
        // rank 0 is gone
      }
    });
    job.options.start = StartMode::continue_;
    const Opened opened = reopen(job);
    if (opened.failure) {
      EXPECT_EQ(opened.failure->code, ErrorCode::mismatch) << to_string(*opened.failure);
    }
    EXPECT_EQ(opened.tag, std::nullopt) << "of input one";
  }
}

/// Nobody's input is that of a run that began before.
TEST_F(Fingerprints, WithoutOneAFreshRunHasNone) {
  give("zero");
  reopen(job);  // commits nothing
  give("");
  commit_steps(job, {{"a", 1}});
  give("one");
  EXPECT_EQ(reopen(job).step, 1);
  give("");
  job.options.start = StartMode::fresh;
  reopen(job, latest, Newer::keep, {{"b", 2}});
  job.options.start = StartMode::continue_;
  give("two");
  EXPECT_EQ(reopen(job).step, 2);
}

TEST_F(Fingerprints, WhatOnlyTheStoresKnowOfIsSaidToBeOfUnknownInput) {
  give("one");
  commit_steps(job, {{"a", 1}});
  lose_prefix();
  job.options.start = StartMode::adopt;
  give("two");
  EXPECT_EQ(reopen(job).step, 1);
  EXPECT_TRUE(job.logged("no fingerprint is recorded for the checkpoints of run 'main'"));
}

TEST_F(Fingerprints, ADamagedRecordForgetsNone) {
  give("one");
  commit_steps(job, {{"a", 1}});
  job.disk.write_all("/case/checkpoints/.kedge/main/run.json", std::vector(10, std::byte{'x'}));
  give("two");
  (void)expect_refused(ErrorCode::mismatch);
  give("one");
  EXPECT_EQ(reopen(job).step, 1);
}

TEST_F(Fingerprints, FilesCountByContentNotByPlace) {
  write("/case/input file.nml", "dt = 1");
  job.options.fingerprint_files = {"/case/input file.nml"};
  commit_steps(job, {{"a", 1}});
  move("/case", "/moved");
  enter("/moved");
  job.options.fingerprint_files = {"/moved/input file.nml"};
  EXPECT_EQ(reopen(job).step, 1);
  write("/moved/input file.nml", "dt = 2");
  const auto failure = expect_refused(ErrorCode::mismatch);
  EXPECT_TRUE(says(failure.message, {"input file.nml (6 bytes, CRC32C"})) << failure.message;
  job.options.fingerprint_files = {"/moved/missing"};
  const auto missing = expect_refused(ErrorCode::not_found);
  EXPECT_TRUE(says(missing.message, {"fingerprint_files"})) << missing.message;
  EXPECT_EQ(missing.path, "/moved/missing");
}

TEST_F(Fingerprints, EachOfSeveralFilesCounts) {
  give_files();
  commit_steps(job, {{"a", 1}});
  const auto before = job.disk.snapshot();
  for (const std::string& path : job.options.fingerprint_files) {
    job.disk.restore(before);
    EXPECT_EQ(reopen(job).step, 1);
    job.disk.flip_bit(path, 3);
    const auto failure = expect_refused(ErrorCode::mismatch);
    EXPECT_TRUE(says(failure.message, {"plate.nml (", "mesh (", "forcing ("})) << failure.message;
  }
  job.disk.restore(before);
  job.options.fingerprint_files.pop_back();
  (void)expect_refused(ErrorCode::mismatch);
}

/// Rank 0 alone reads them; all ranks hear of it, and nothing is recorded instead.
TEST_F(Fingerprints, AFileThatCannotBeReadIsIoInWordsOnAllRanks) {
  const std::vector<std::pair<std::string, std::function<void(const std::string&)>>> obstacles = {
      {"permission denied",
       [&](const std::string& path) {
         auto status = job.disk.snapshot().at(path).status;
         status.mode = 0;
         job.disk.plant(path, status);
       }},
      {"I/O error", [&](const std::string& path) { job.disk.refuse_open(path); }},
      {"I/O error", [&](const std::string& path) { job.disk.make_unreadable(path, 0); }},
      {"I/O error", [&](const std::string& path) { job.disk.make_unreadable(path, 5); }},
  };
  give_files();
  for (const bool has_commits : {false, true}) {
    if (has_commits) commit_steps(job, {{"a", 1}});
    const auto before = job.disk.snapshot();
    for (const auto& [words, put] : obstacles) {
      for (const std::string& path : job.options.fingerprint_files) {
        SCOPED_TRACE(compose("{}: {}, {}", path, words, has_commits));
        job.disk.restore(before);
        put(path);
        const auto failure = expect_refused(ErrorCode::io);
        EXPECT_TRUE(says(failure.message, {"cannot read a file of fingerprint_files", words})) << failure.message;
        EXPECT_EQ(failure.path, path);
        EXPECT_EQ(failure.rank, 0);
        job.disk.restore(before, "/inputs");
        EXPECT_EQ(reopen(job).step, has_commits ? 1 : -1);
      }
    }
    job.disk.restore(before);
  }
  job.disk.flip_bit("/inputs/mesh", 3);
  (void)expect_refused(ErrorCode::mismatch);
}

TEST_F(Fingerprints, RanksThatDoNotSeeTheFilesNeedNot) {
  give_files();
  job.disk.make_directories("/nowhere", 0755);
  const auto hide = [&](int rank) { job.disk.mount(rank, "/inputs", "/nowhere"); };
  for (const int rank : {1, 2, 3}) hide(rank);
  commit_steps(job, {{"a", 1}});
  EXPECT_EQ(reopen(job).step, 1);
  job.disk.flip_bit("/inputs/mesh", 3);
  (void)expect_refused(ErrorCode::mismatch);
  hide(0);
  const auto failure = expect_refused(ErrorCode::not_found);
  EXPECT_TRUE(says(failure.message, {"fingerprint_files"})) << failure.message;
  EXPECT_EQ(failure.path, "/inputs/plate.nml");
  EXPECT_EQ(failure.rank, 0);
}

}  // namespace
}  // namespace kedge::faults::fingerprint_test

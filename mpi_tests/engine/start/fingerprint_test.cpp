// Another input in the same place does not go on from the checkpoints of the first.
#include "base/text.hpp"
#include "engine/start/right_run.hpp"

namespace kedge::faults {
namespace {

class Fingerprints : public RightRun {
 protected:
  void give(const std::string& text) { job.options.fingerprint = text; }
};

TEST_F(Fingerprints, AnotherInputInTheSameDirectoryIsRefusedWithBothNamesAndTheWaysOn) {
  give("plate 384 x 512");
  commit_steps(job, {{"a", 1}});
  EXPECT_EQ(reopen(job).step, 1);
  give("plate 100 x 100");
  const auto failure = expect_refused(ErrorCode::mismatch);
  EXPECT_TRUE(says(failure.message, {"plate 384 x 512", "plate 100 x 100", "KEDGE_RUN", "another directory",
                                     "KEDGE_OPEN_ACCEPT_FINGERPRINT=1"}))
      << failure.message;
  job.options.run = "small";
  EXPECT_EQ(reopen(job, latest, Newer::keep, {{"b", 2}}).tag, std::nullopt);
  EXPECT_EQ(reopen(job).step, 2);
}

TEST_F(Fingerprints, AnAcceptedOneIsRecordedInItsPlace) {
  give("one");
  commit_steps(job, {{"a", 1}});
  give("two");
  job.options.open.accept_fingerprint = true;
  EXPECT_EQ(reopen(job).step, 1);
  job.options.open.accept_fingerprint = false;
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
  job.options.open.fresh = true;
  EXPECT_EQ(reopen(job, latest, Newer::keep, {{"b", 2}}).tag, std::nullopt);
  job.options.open.fresh = false;
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
  job.options.open.fresh = true;
  reopen(job);
  const auto operations = job.operations;
  for (std::uint64_t n = 1; n <= operations[0]; ++n) {
    SCOPED_TRACE(compose("rank 0 dies in operation {}", n));
    job.disk.restore(before);
    job.options.open.fresh = true;
    job.disk.stop_world_after(0, n, n);
    job.start([](RankScope& scope) {
      try {
        const Engine engine = scope.make_engine();
      } catch (const Error&) {
        // rank 0 is gone
      }
    });
    job.options.open.fresh = false;
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
  job.options.open.fresh = true;
  reopen(job, latest, Newer::keep, {{"b", 2}});
  job.options.open.fresh = false;
  give("two");
  EXPECT_EQ(reopen(job).step, 2);
}

TEST_F(Fingerprints, WhatOnlyTheStoresKnowOfIsSaidToBeOfUnknownInput) {
  give("one");
  commit_steps(job, {{"a", 1}});
  lose_prefix();
  job.options.open.adopt_store = true;
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
  const auto write = [&](const std::string& path, std::string_view text) {
    job.disk.write_all(path, std::as_bytes(std::span(text)));
  };
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

}  // namespace
}  // namespace kedge::faults

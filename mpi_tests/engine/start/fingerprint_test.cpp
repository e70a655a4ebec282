// Another input in the same place does not go on from the checkpoints of the first.
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

// A prefix that was moved takes its stores along: what comes to the old place meets neither the run nor its stores.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <optional>

#include "base/text.hpp"
#include "engine/start/right_run.hpp"
#include "fs/system_error.hpp"
#include "harness/forwarding_file_system.hpp"
#include "persist/prefix_runs.hpp"
#include "persist/run_record.hpp"

namespace kedge::faults::moved_prefix_test {
namespace {

/// A directory whose names cannot be looked up, for this reason.
class Denied final : public ForwardingFileSystem {
 public:
  Denied(std::shared_ptr<fs::FileSystem> inner, std::string below, int reason)
      : ForwardingFileSystem(std::move(inner)), below_(std::move(below)), reason_(reason) {}
  std::optional<fs::FileStatus> status(const std::string& path) override {
    if (path.starts_with(below_)) fs::throw_system_error("check the path", path, reason_);
    return inner().status(path);
  }

 private:
  std::string below_;
  int reason_;
};

class MovedPrefix : public RightRun {
 protected:
  /// One persistent commit, and a later one in the stores alone.
  MovedPrefix() {
    commit_steps(job, {{"a", 1}});
    local_only();
    reopen(job, latest, Newer::keep, {{"b", 2}});
  }
  /// The start there goes on from this step.
  void expect_at(const std::string& directory, int step) {
    enter(directory);
    const Opened opened = reopen(job);
    EXPECT_FALSE(opened.failure) << directory << ": " << to_string(opened.failure.value_or(Failure{}));
    EXPECT_EQ(opened.step, step) << directory;
  }
  void deny(const std::string& below, int reason) {
    job.surroundings = [below, reason](int, start::Environment& environment) {
      environment.file_system = std::make_shared<Denied>(environment.file_system, below, reason);
    };
  }
  void move_and_start(const std::string& from, const std::string& to, int step) {
    move(from, to);
    expect_at(to, step);
  }
};

TEST_F(MovedPrefix, ANewJobInTheOldPlaceBeginsFromZeroInAStoreOfItsOwn) {
  move_and_start("/case", "/moved", 2);
  enter("/case");
  const Opened opened = reopen(job, latest, Newer::keep, {{"other", 70}});
  EXPECT_FALSE(opened.failure) << to_string(opened.failure.value_or(Failure{}));
  EXPECT_EQ(opened.tag, std::nullopt);
  EXPECT_EQ(stores(), 2U);
  expect_at("/moved", 2);
  expect_at("/case", 70);
}

TEST_F(MovedPrefix, ACopyThatComesToTheOldPlaceGetsAStoreOfItsOwn) {
  move_and_start("/case", "/moved", 2);
  copy("/moved", "/case");
  expect_at("/case", 1);
  reopen(job, latest, Newer::keep, {{"c", 30}});
  EXPECT_EQ(stores(), 2U);
  expect_at("/moved", 2);
  expect_at("/case", 30);
  // It is found again wherever the copy goes.
  job.disk.remove_all("/moved");
  move_and_start("/case", "/elsewhere", 30);
  EXPECT_EQ(stores(), 2U);
}

/// Each copy has stores of its own, also those that come to the same place one after the other: whoever puts a copy
/// where another was says what is to become of the stores of that one.
TEST_F(MovedPrefix, AFreshCopyInAPlaceWhereACopyWasDoesNotGoOnFromThatOne) {
  copy("/case", "/copy");
  expect_at("/copy", 1);
  reopen(job, latest, Newer::keep, {{"c", 30}});
  job.disk.remove_all("/copy");
  copy("/case", "/copy");
  enter("/copy");
  const Failure failure = expect_refused(ErrorCode::mismatch);
  EXPECT_TRUE(says(failure.message, {"no record of", "KEDGE_START=adopt", "kedge drop", "KEDGE_START=fresh"}));
  const auto before = job.disk.snapshot();
  remove_everywhere(failure.path);
  expect_at("/copy", 1);
  // Who says so goes on from them.
  job.disk.restore(before);
  job.options.start = StartMode::adopt;
  expect_at("/copy", 30);
  job.options.start = StartMode::continue_;
  expect_at("/copy", 30);
}

TEST_F(MovedPrefix, AnOriginalThatComesToThePlaceOfItsCopyKeepsItsOwn) {
  copy("/case", "/copy");
  expect_at("/copy", 1);
  reopen(job, latest, Newer::keep, {{"c", 30}});
  job.disk.remove_all("/copy");
  move("/case", "/copy");
  enter("/copy");
  remove_everywhere(expect_refused(ErrorCode::mismatch).path);
  expect_at("/copy", 2);
}

TEST_F(MovedPrefix, OfACopyAndAnOriginalThatBothMovedOneTakesTheStores) {
  copy("/case", "/copy");
  move("/case", "/moved");
  expect_at("/copy", 2);  // nothing tells it from one that was moved
  reopen(job, latest, Newer::keep, {{"c", 30}});
  expect_at("/moved", 1);
  reopen(job, latest, Newer::keep, {{"d", 40}});
  expect_at("/copy", 30);
  expect_at("/moved", 40);
}

TEST_F(MovedPrefix, ALinkLeftInTheOldPlaceMakesItNoCopy) {
  move("/case", "/moved");
  job.disk.plant_link("/case", "/moved");
  expect_at("/moved", 2);
  EXPECT_FALSE(job.logged("a copy of"));
}

/// Where this user may not look may be the original: then this is a copy. It is no reason not to start.
TEST_F(MovedPrefix, AnOldPlaceOutOfReachIsTakenForTheOriginal) {
  copy("/case", "/copy");
  deny("/case/", EACCES);
  expect_at("/copy", 1);
  EXPECT_TRUE(job.logged("a copy of /case/checkpoints"));
  EXPECT_TRUE(job.logged("set KEDGE_START=adopt"));
}

/// A guess would cost the checkpoints in the stores, or take the original's.
TEST_F(MovedPrefix, AnOldPlaceThatCannotBeReadStopsTheStartUntilItCan) {
  move("/case", "/moved");
  deny("/case/", EIO);
  enter("/moved");
  const auto failure = expect_refused(ErrorCode::io);
  EXPECT_TRUE(says(failure.message, {"whether it was moved or copied", "Restart once", "KEDGE_START=adopt"}))
      << failure.message;
  EXPECT_TRUE(failure.path.starts_with("/case/checkpoints/.kedge/main")) << failure.path;
  const auto before = job.disk.snapshot();
  job.surroundings = {};
  expect_at("/moved", 2);
  // Who knows that it was moved can say so: that place may never come back.
  job.disk.restore(before);
  deny("/case/", EIO);
  job.options.start = StartMode::adopt;
  expect_at("/moved", 2);
  job.options.start = StartMode::continue_;
  expect_at("/moved", 2);
}

/// Each answer alone leads to the other's refusal, which names the value that is both.
TEST_F(MovedPrefix, OneStartMayAdoptAndAcceptAnotherFingerprint) {
  job.options.fingerprint = "one";
  expect_at("/case", 2);
  move("/case", "/moved");
  deny("/case/", EIO);
  enter("/moved");
  job.options.fingerprint = "two";
  job.options.start = StartMode::accept;
  EXPECT_TRUE(says(expect_refused(ErrorCode::io).message, {"set KEDGE_START=adopt_and_accept for one start"}));
  job.options.start = StartMode::adopt;
  EXPECT_TRUE(says(expect_refused(ErrorCode::mismatch).message, {"KEDGE_START=adopt_and_accept to continue"}));
  job.options.start = StartMode::adopt_and_accept;
  expect_at("/moved", 2);
  job.options.start = StartMode::continue_;
  expect_at("/moved", 2);
}

TEST_F(MovedPrefix, WhoKnowsThatItWasMovedNeedsNoPermissionInTheOldPlace) {
  move("/case", "/moved");
  deny("/case/", EACCES);
  job.options.start = StartMode::adopt;
  expect_at("/moved", 2);
  job.options.start = StartMode::continue_;
  expect_at("/moved", 2);
}

/// Its directory can be looked at, and what lies in it cannot be read.
TEST_F(MovedPrefix, AnOldRecordThatCannotBeReadIsNoGuessEither) {
  copy("/case", "/copy");
  const auto before = job.disk.snapshot();
  for (const auto& [path, entry] : before) {
    if (path.starts_with("/case/checkpoints/.kedge/main/") && entry.status.kind == fs::FileStatus::Kind::file)
      job.disk.refuse_open(path);
  }
  enter("/copy");
  const auto failure = expect_refused(ErrorCode::io);
  EXPECT_EQ(failure.path, "/case/checkpoints/.kedge/main/run.json");
}

/// Nothing on it says which stores are its own: those that name another prefix may have what is newer.
TEST_F(MovedPrefix, OneThatLostItsRecordsDoesNotForgetItsStores) {
  move("/case", "/moved");
  job.disk.remove_all("/moved/checkpoints/.kedge");
  enter("/moved");
  const auto before = job.disk.snapshot();
  for (const int nodes_lost : {0, 1}) {
    SCOPED_TRACE(nodes_lost);
    job.disk.restore(before);
    for (int node = 0; node < nodes_lost; ++node) job.disk.remove_all(compose("/nodes/node{}", node));
    const auto failure = expect_refused(ErrorCode::mismatch);
    EXPECT_TRUE(says(failure.message, {"lost its records", "prefix was /case/checkpoints", "move the prefix back",
                                       "kedge drop", "KEDGE_START=fresh"}))
        << failure.message;
    EXPECT_TRUE(failure.path.starts_with(compose("/nodes/node{}/kedge-", nodes_lost))) << failure.path;
  }
  // Each way on that it names.
  for (int node = 0; node < 4; ++node) job.disk.remove_all(compose("/nodes/node{}", node));
  expect_at("/moved", 1);
  job.disk.restore(before);
  move_and_start("/moved", "/case", 2);
  job.disk.restore(before);
  enter("/moved");
  job.options.start = StartMode::fresh;
  EXPECT_EQ(reopen(job).tag, std::nullopt);
}

TEST_F(MovedPrefix, ACopyThatLostItsRecordsContinuesFromItsManifests) {
  copy("/case", "/copy");
  job.disk.remove_all("/copy/checkpoints/.kedge");
  enter("/copy");
  const auto lines = job.log().size();
  expect_at("/copy", 1);
  const auto log = job.log();
  EXPECT_TRUE(std::any_of(log.begin() + static_cast<std::ptrdiff_t>(lines), log.end(), [](const auto& line) {
    return says(line, {"run 'main', incarnation", "has checkpoints"});
  })) << log.back();
  expect_at("/case", 2);
}

TEST_F(MovedPrefix, AFileInTheOldPlaceIsNoOriginal) {
  move("/case", "/moved");
  job.disk.write_all("/case", {});
  expect_at("/moved", 2);
}

/// Its notes still say whose they are; where they do not either, it may be the original.
TEST_F(MovedPrefix, ACopyOfAnOriginalWhoseRecordIsLostOrDamagedDoesNotTakeItsStores) {
  const std::string records = "/case/checkpoints/.kedge/main/";
  copy("/case", "/copy");
  const auto before = job.disk.snapshot();
  for (const bool is_damaged : {true, false}) {
    for (const bool notes : {true, false}) {
      if (!is_damaged && !notes) continue;  // nothing is there any more
      SCOPED_TRACE(compose("{}, {}", is_damaged ? "damaged" : "lost", notes ? "notes" : "no notes"));
      job.disk.restore(before);
      if (is_damaged) job.disk.truncate_from_outside(records + "run.json", 20);
      else job.disk.remove_all(records + "run.json");
      for (const char* note : {"begun-1", "begun-2"}) {
        if (!notes) job.disk.remove_all(records + note);
      }
      expect_at("/copy", 1);
      expect_at("/case", 2);
    }
  }
}

/// The record stays small however often a case is moved.
TEST_F(MovedPrefix, TheRecordRemembersTheLastSixteenPlaces) {
  std::string at = "/case";
  for (int i = 0; i < 20; ++i) {
    const std::string next = compose("/place-{}", i);
    move_and_start(at, next, 2);
    at = next;
  }
  const auto found =
      persist::read_run_record(*job.disk.view(0), persist::records_directory(at + "/checkpoints", "main"));
  ASSERT_TRUE(found.record);
  EXPECT_EQ(found.record->former_prefixes.size(), 16U);
  EXPECT_EQ(found.record->former_prefixes.front(), "/place-18/checkpoints");
}

TEST_F(MovedPrefix, WhoIsRemovedWhereItMovedToIsNotResumedFromMemory) {
  move_and_start("/case", "/moved", 2);
  job.disk.remove_all("/moved");
  enter("/moved");
  (void)expect_refused(ErrorCode::mismatch);
}

TEST_F(MovedPrefix, ANameThatIsNotUtf8IsFollowedToo) {
  const std::string strange = "/caf\xe9";
  move_and_start("/case", strange, 2);
  expect_at(strange, 2);
  EXPECT_EQ(std::ranges::count_if(job.log(), [](const auto& line) { return line.find("moved here") != line.npos; }), 1);
  move_and_start(strange, "/further", 2);
}

/// The first start after a move comes to nothing, at any operation of a rank; then the case is moved back, or on.
TEST_F(MovedPrefix, AStartThatFailsAnywhereLosesTheStoresToNeitherPlace) {
  move("/case", "/moved");
  enter("/moved");
  const auto before = job.disk.snapshot();
  (void)reopen(job);
  const auto operations = job.operations;
  for (const int rank : {0, 1, 3}) {
    for (std::uint64_t n = 1; n <= operations[static_cast<std::size_t>(rank)]; ++n) {
      for (const std::string to : {"/case", "/further"}) {
        SCOPED_TRACE(compose("rank {} fails in operation {}, then {}", rank, n, to));
        job.disk.restore(before);
        enter("/moved");
        job.disk.fail(rank, n, EIO);
        job.start([](RankScope& scope) {
          try {
            const Engine engine = scope.make_engine();
          } catch (const Error&) {
            // the failure that was planned
          }
        });
        move_and_start("/moved", to, 2);
        if (HasFailure()) return;
      }
    }
  }
}

}  // namespace
}  // namespace kedge::faults::moved_prefix_test

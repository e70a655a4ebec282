// A snapshot that is lost is reported by wait, on_complete or finalize, and the node-local files are kept.
#include <gmock/gmock.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/calls/snapshot_fixture.hpp"

namespace kedge::faults::device_snapshot_lost_test {
namespace {

using testing::ContainsRegex;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

class LostSnapshot : public DeviceSnapshot {
 protected:
  /// Of both ranks: rank 1's device fails while its copy is written to the store.
  void lose(RankScope& scope, Engine& engine, Application& application, int step) {
    engine.pause();
    application.checkpoint(step);
    if (scope.rank == 1) of(1)->fail("copy", 1, ErrorCode::io);
    engine.resume();
  }
  /// The step that the next start finds.
  void expect_found(SimulatedJob& any, int step) {
    expect_returned(any.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      EXPECT_EQ(Application(*of(scope.rank), engine).restore(), step);
    }));
  }
  using Program = std::function<void(Engine&, Application&, RankScope&)>;
  /// What finalize throws on both ranks at the end of `program`.
  std::optional<Failure> thrown_at_end(SimulatedJob& any, const Program& program) {
    OnEachRank thrown(2);
    expect_returned(any.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      Application application(*of(scope.rank), engine);
      program(engine, application, scope);
      thrown.put(scope.rank, failure_of([&] { engine.finalize(); }));
      EXPECT_EQ(code_of([&] { engine.finalize(); }), ErrorCode::bad_state) << "it is shut down in any case";
      EXPECT_EQ(of(scope.rank)->allocated_bytes(), 0U);
    }));
    return thrown.same();
  }
  static void expect_told(Engine& engine, const std::string& tag) {
    EXPECT_EQ(code_of([&] { engine.wait(tag, Level::local); }), ErrorCode::io) << tag;
  }
};

TEST_F(LostSnapshot, FinalizeReportsItIfNobodyHas) {
  const auto failure = thrown_at_end(job, [&](Engine& engine, Application& application, RankScope& scope) {
    application.checkpoint(1);
    lose(scope, engine, application, 2);
  });
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->code, ErrorCode::io);
  EXPECT_EQ(failure->rank, 1);
  EXPECT_THAT(failure->message, StartsWith("the newest checkpoint, 2, is lost: its snapshot could not "
                                           "be written to the node-local stores: "));
  EXPECT_THAT(failure->message, EndsWith("; 1 is the newest that is left, and the node-local "
                                         "files are kept. Call wait(tag, local) before finalize: if it throws, the "
                                         "program can still write another checkpoint"));
  expect_found(job, 1);
}

/// To look at another checkpoint, or to go back to it, says nothing of the one that is lost.
TEST_F(LostSnapshot, FinalizeReportsItAlsoAfterAnOpen) {
  for (const Selection& selection : {Selection(latest), Selection(Tag("1"))}) {
    SimulatedJob own{2};
    use(own);
    own.options.store.keep = 3;
    const auto failure = thrown_at_end(own, [&](Engine& engine, Application& application, RankScope& scope) {
      application.checkpoint(1);
      application.checkpoint(2);
      lose(scope, engine, application, 3);
      EXPECT_TRUE(engine.open(selection));
      engine.close();
    });
    ASSERT_TRUE(failure);
    EXPECT_THAT(failure->message, HasSubstr("3, is lost"));
    expect_found(own, 2);
  }
}

TEST_F(LostSnapshot, FinalizeDoesNotReportWhatIsKnownGivenUpOrMadeUpFor) {
  const std::vector<Program> programs = {
      [](Engine& engine, Application&, RankScope&) { expect_told(engine, "2"); },
      [](Engine& engine, Application&, RankScope&) {
        EXPECT_EQ(engine.open(latest, Newer::discard), "1");
        engine.close();
      },
      [](Engine&, Application& application, RankScope&) { application.checkpoint(3); },
  };
  for (const Program& program : programs) {
    SimulatedJob own{2};
    use(own);
    const auto failure = thrown_at_end(own, [&](Engine& engine, Application& application, RankScope& scope) {
      application.checkpoint(1);
      lose(scope, engine, application, 2);
      program(engine, application, scope);
    });
    EXPECT_FALSE(failure) << text_of(failure);
    expect_found(own, &program == &programs.back() ? 3 : 1);
  }
}

TEST_F(LostSnapshot, FinalizeWithALimitReturnsFalseAndKeepsTheFiles) {
  job.options.store.on_exit = OnExit::remove;
  expect_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    Application application(*of(scope.rank), engine);
    application.checkpoint(1);
    lose(scope, engine, application, 2);
    EXPECT_EQ(application.restore(), 1);
    EXPECT_FALSE(engine.finalize_for(std::chrono::hours(1)));
  }));
  expect_found(job, 1);
}

TEST_F(LostSnapshot, FinalizeReportsOneThatIsLostAfterAnotherWasGivenUp) {
  const auto failure = thrown_at_end(job, [&](Engine& engine, Application& application, RankScope& scope) {
    application.checkpoint(1);
    lose(scope, engine, application, 2);
    EXPECT_EQ(engine.open(latest, Newer::discard), "1");
    engine.close();
    lose(scope, engine, application, 3);
  });
  ASSERT_TRUE(failure);
  EXPECT_THAT(failure->message, StartsWith("the newest checkpoint, 3, is lost"));
}

/// A load that failed, and was not closed: whoever reads of it still has to read of the checkpoint.
TEST_F(LostSnapshot, FinalizeReportsItBeforeWhatElseItThrows) {
  for (const bool has_limit : {false, true}) {
    SimulatedJob own{2};
    use(own);
    OnEachRank thrown(2);
    expect_returned(own.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      Application application(*of(scope.rank), engine);
      application.checkpoint(1);
      lose(scope, engine, application, 2);
      EXPECT_EQ(engine.open(), "1");
      EXPECT_FALSE(engine.load("nothing", room_at(nullptr, 0)));
      thrown.put(scope.rank, failure_of([&] {
                   if (!has_limit) return engine.finalize();
                   (void)engine.finalize_for(std::chrono::hours(1));
                 }));
    }));
    const auto failure = thrown.same();
    ASSERT_TRUE(failure);
    EXPECT_EQ(failure->code, ErrorCode::io);
    EXPECT_THAT(failure->message, StartsWith("the newest checkpoint, 2, is lost: "));
    EXPECT_THAT(failure->message, HasSubstr("; also: not_found on rank 0: 1 has no region 'nothing'"));
  }
}

/// The older commit is all that there is.
TEST_F(LostSnapshot, NothingIsRemovedAtTheEnd) {
  for (const OnExit on_exit : {OnExit::remove, OnExit::remove_if_persistent}) {
    SimulatedJob own{2};
    use(own);
    own.options.store.on_exit = on_exit;
    own.options.persistent.every = on_exit == OnExit::remove ? 10 : 1;
    const auto failure = thrown_at_end(own, [&](Engine& engine, Application& application, RankScope& scope) {
      application.checkpoint(1);
      if (on_exit == OnExit::remove_if_persistent) engine.wait("1", Level::persistent);
      lose(scope, engine, application, 2);
    });
    EXPECT_TRUE(failure);
    EXPECT_EQ(own.logged("the newest checkpoint, 1, is only in the node-local stores. To flush it"),
              on_exit == OnExit::remove);
    EXPECT_TRUE(own.logged(" kept for the next start"));
    expect_found(own, 1);
  }
}

/// The end itself fails where the store has become read-only.
TEST_F(LostSnapshot, FinalizeReportsItBeforeALockThatStays) {
  OnEachRank thrown(2);
  expect_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    Application application(*of(scope.rank), engine);
    application.checkpoint(1);
    engine.pause();
    application.checkpoint(2);
    Volume read_only;
    read_only.write_errno = EROFS;
    if (scope.rank == 1) job.disk.set_volume("/nodes", read_only);
    engine.resume();
    thrown.put(scope.rank, failure_of([&] { engine.finalize(); }));
  }));
  const auto failure = thrown.same();
  ASSERT_TRUE(failure);
  EXPECT_THAT(failure->message, StartsWith("the newest checkpoint, 2, is lost: "));
  EXPECT_THAT(failure->message, ContainsRegex("; also: io on rank [01]: cannot remove: "));
}

/// Each is answered for, and only the newest is finalize's.
TEST_F(LostSnapshot, SeveralInARowAreKnownByTheirTags) {
  std::vector<OnEachRank> heard(2, OnEachRank(2));
  const auto failure = thrown_at_end(job, [&](Engine& engine, Application& application, RankScope& scope) {
    application.checkpoint(1);
    lose(scope, engine, application, 2);
    lose(scope, engine, application, 3);
    expect_told(engine, "3");
    expect_told(engine, "2");
    for (const int step : {2, 3}) {
      engine.on_complete(std::to_string(step), Level::local, [&, step](const std::optional<Failure>& why) {
        heard[static_cast<std::size_t>(step) - 2].put(scope.rank, why);
      });
    }
    (void)engine.need_checkpoint();
  });
  EXPECT_FALSE(failure) << text_of(failure);
  for (const OnEachRank& each : heard) {
    ASSERT_TRUE(each.same());
    EXPECT_EQ(each.same()->code, ErrorCode::io);
  }
}

TEST_F(LostSnapshot, ThatAnEarlierOneIsKnownToBeLostSaysNothingOfTheLast) {
  for (const int last : {2, 3}) {
    SimulatedJob own{2};
    use(own);
    const auto failure = thrown_at_end(own, [&](Engine& engine, Application& application, RankScope& scope) {
      application.checkpoint(1);
      lose(scope, engine, application, 2);
      if (last == 2) expect_told(engine, "2");
      lose(scope, engine, application, last);
      if (last == 3) expect_told(engine, "2");
    });
    ASSERT_TRUE(failure) << last;
    EXPECT_THAT(failure->message, StartsWith("the newest checkpoint, " + std::to_string(last) + ", is lost"));
  }
}

/// A tag that is used again and again, such as "newest": generations tell the two apart.
TEST_F(LostSnapshot, OneOfTheSameTagIsToldFromTheOneThatIsLeft) {
  const auto failure = thrown_at_end(job, [&](Engine& engine, Application& application, RankScope& scope) {
    application.checkpoint(1);
    lose(scope, engine, application, 1);
  });
  ASSERT_TRUE(failure);
  EXPECT_THAT(failure->message, ContainsRegex("the newest checkpoint, 1 .generation [0-9]*2., is lost"));
  EXPECT_THAT(failure->message, ContainsRegex("; 1 .generation [0-9]*1. is the newest that is left"));
  EXPECT_TRUE(job.logged("; 1 (generation "));
}

/// A store that stays full loses one after the other: the last 16 are remembered.
TEST_F(LostSnapshot, ThoseOfLongAgoAreForgotten) {
  const auto failure = thrown_at_end(job, [&](Engine& engine, Application& application, RankScope& scope) {
    application.checkpoint(1);
    for (int step = 2; step < 19; ++step) lose(scope, engine, application, step);
    expect_told(engine, "18");
    expect_told(engine, "3");
    EXPECT_EQ(code_of([&] { engine.wait("2", Level::local); }), ErrorCode::not_found);
  });
  EXPECT_FALSE(failure) << text_of(failure);
}

/// A full store at any operation between the last commit and the end: either finalize says so on all ranks, and the
/// next start has the checkpoint before, or the next start has the last.
TEST_F(LostSnapshot, FinalizeSaysThatTheLastOneIsLostIfAndOnlyIfItIs) {
  int lost = 0;
  std::uint64_t n = 1;
  for (bool reached = true; reached && n < 200 && !HasFailure(); ++n) {
    SimulatedJob own{2};
    use(own);
    OnEachRank thrown(2);
    expect_returned(own.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      Application application(*of(scope.rank), engine, kSmall);
      application.checkpoint(1);
      engine.pause();
      application.checkpoint(2);
      const std::uint64_t struck = own.disk.operations(1) + n;
      if (scope.rank == 1) own.disk.fail(1, struck, ENOSPC);
      engine.resume();
      thrown.put(scope.rank, failure_of([&] { engine.finalize(); }));
      if (scope.rank == 1) {
        reached = own.disk.operations(1) >= struck;
        own.disk.heal(1);
      }
    }));
    const auto failure = thrown.same();
    const bool is_lost = failure && failure->message.starts_with("the newest checkpoint, 2, is lost: ");
    if (is_lost) ++lost;
    expect_returned(own.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      EXPECT_EQ(Application(*of(scope.rank), engine, kSmall).restore(), is_lost ? 1 : 2) << n;
    }));
  }
  EXPECT_GT(lost, 4);
  EXPECT_LT(n, 200U);
}

/// On devices the bytes are known only when the worker brings them to the store: then the snapshot is lost.
TEST_F(LostSnapshot, OfReplicatedRegionsThatDiffer) {
  OnEachRank told(2);
  expect_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    ModelDevices::Array field(*of(scope.rank), 0, kSmall);
    for (int step = 1; step <= 4; ++step) {
      const bool differs = step == 3 && scope.rank == 1;
      fill(field.contents(), static_cast<unsigned>(differs ? 99 : step));
      engine.create(std::to_string(step));
      EXPECT_TRUE(engine.save("field", bytes_at(field.address(), kSmall), Replicated{}));
      engine.commit();
      const auto failure = failure_of([&] { engine.wait(std::to_string(step), Level::local); });
      if (step == 3) told.put(scope.rank, failure);
      else EXPECT_FALSE(failure) << step << failure->message;
    }
    EXPECT_NO_THROW(engine.finalize());
  }));
  const auto failure = told.same();
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->code, ErrorCode::mismatch);
  EXPECT_THAT(failure->message, testing::HasSubstr("region 'field' is Replicated, and its bytes on rank 1 differ"));
}

}  // namespace
}  // namespace kedge::faults::device_snapshot_lost_test

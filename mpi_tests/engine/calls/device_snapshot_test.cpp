// Regions in the memory of a GPU that are copied there first (device.snapshot): commit returns before it is sealed,
// create, open and finalize wait until it is; GPU memory is used again and freed in the end; what cannot be sealed
// behind is sealed in commit.
#include <gtest/gtest.h>

#include <csignal>
#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "engine/calls/snapshot_fixture.hpp"

namespace kedge::faults::device_snapshot_test {
namespace {

TEST_F(DeviceSnapshot, CommitReturnsBeforeItIsSealed) {
  expect_returned(job.start([&](RankScope& scope) {
    ModelDevices& own = *of(scope.rank);
    Engine engine = scope.make_engine();
    Application application(own, engine);
    application.checkpoint(1);
    EXPECT_EQ(own.copied_within(), 0U) << "the first of a structure needs HDF5";
    EXPECT_GE(engine.level("1"), Level::local);
    for (int step = 2; step < 5; ++step) {
      const std::string tag = std::to_string(step);
      engine.pause();
      application.checkpoint(step);
      EXPECT_EQ(engine.level(tag), Level::snapshot);
      EXPECT_GE(engine.level(std::to_string(step - 1)), Level::local);
      engine.wait(tag, Level::snapshot);
      EXPECT_EQ(engine.level(tag), Level::snapshot);
      engine.resume();
      engine.wait(tag, Level::local);
      EXPECT_GE(engine.level(tag), Level::local);
      EXPECT_EQ(own.allocated_bytes(), kSize) << "it is used again";
      EXPECT_EQ(own.copied_within(), static_cast<std::size_t>(step - 1) * kSize);
    }
    EXPECT_EQ(application.restore(), 4);
    EXPECT_EQ(engine.counters().commits, 4U);
    engine.finalize();
    EXPECT_EQ(own.allocated_bytes(), 0U);
    EXPECT_EQ(own.pinned_bytes(), 0U);
  }));
  EXPECT_TRUE(job.logged("device.snapshot is experimental"));
  EXPECT_FALSE(job.logged("device.snapshot has no effect")) << "all is as it was asked for";
}

TEST_F(DeviceSnapshot, TheNextOneWaitsUntilItIsSealedAndHasItAsParent) {
  job.options.store.keep = 2;
  expect_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    Application application(*of(scope.rank), engine);
    for (int step = 1; step < 5; ++step) {
      application.save(step);
      EXPECT_GE(engine.level(std::to_string(step - 1)), step == 1 ? Level::none : Level::local);
      engine.commit();
    }
    EXPECT_EQ(engine.open(), "4") << "open waits, too";
    const Id128 parent_id = engine.info().parent_id;
    engine.close();
    EXPECT_EQ(engine.open(Tag("3")), "3");
    EXPECT_EQ(engine.info().id, parent_id);
    engine.close();
  }));
}

TEST_F(DeviceSnapshot, FinalizeSealsIt) {
  expect_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    Application application(*of(scope.rank), engine);
    application.checkpoint(1);
    engine.pause();
    application.checkpoint(2);
    EXPECT_EQ(engine.level("2"), Level::snapshot);
    engine.finalize();
    EXPECT_GE(engine.level("2"), Level::local);
    EXPECT_EQ(of(scope.rank)->allocated_bytes(), 0U);
    EXPECT_EQ(of(scope.rank)->pinned_bytes(), 0U) << "the application may reset its GPU now";
  }));
  expect_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    EXPECT_EQ(Application(*of(scope.rank), engine).restore(), 2);
  }));
}

TEST_F(DeviceSnapshot, AnAbandonedOneGivesItsMemoryBack) {
  expect_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    Application application(*of(scope.rank), engine);
    application.checkpoint(1);
    for (int step = 2; step < 5; ++step) {
      application.save(step);
      engine.abandon();
    }
    EXPECT_EQ(of(scope.rank)->allocated_bytes(), kSize);
    application.checkpoint(5);
    EXPECT_EQ(application.restore(), 5);
    EXPECT_EQ(of(scope.rank)->allocated_bytes(), kSize);
  }));
}

// HDF5 makes the new structure, in the application's thread: before and after the copy.
TEST_F(DeviceSnapshot, WithOtherRegionsThanBeforeItIsSealedInCommit) {
  for (const bool field_first : {true, false}) {
    SimulatedJob own{2};
    use(own);
    expect_returned(own.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      Application application(*of(scope.rank), engine);
      const std::vector<std::byte> more(3 * kMiB, std::byte{7});
      application.checkpoint(1);
      application.checkpoint(2);
      const auto copied = of(scope.rank)->copied_within();
      EXPECT_EQ(copied % kSize, 0U);
      // On one rank only, which needs HDF5.
      const auto save_more = [&] {
        if (scope.rank == 1) (void)engine.save("more", bytes_at(more.data(), more.size()));
      };
      application.save(3, [&] { field_first ? void() : save_more(); });
      if (field_first) save_more();
      engine.commit();
      EXPECT_GE(engine.level("3"), Level::local);
      EXPECT_EQ(application.restore(), 3);
      EXPECT_TRUE(engine.open());
      std::vector<std::byte> loaded(more.size());
      if (scope.rank == 1) {
        EXPECT_TRUE(engine.load("more", room_at(loaded.data(), loaded.size())));
        EXPECT_TRUE(loaded == more);
      }
      engine.close();
      application.checkpoint(4);  // fewer than before
      EXPECT_EQ(application.restore(), 4);
      application.checkpoint(5);
      EXPECT_EQ(application.restore(), 5);
    }));
    EXPECT_TRUE(
        own.logged("device.snapshot: 3 is written to the node-local stores before commit returns, because its "
                   "regions differ from the previous checkpoint's on some rank"));
    EXPECT_FALSE(own.logged("device.snapshot: 4 is written")) << "it is said once";
  }
}

// Its place was promised; it is another one now.
TEST_F(DeviceSnapshot, IsFilledInItsNewPlaceWhereRegionsComeInAnotherOrder) {
  expect_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    const ModelDevices::Array field(*of(scope.rank), 0, kSize);
    const std::vector<std::byte> host(kSize, std::byte{5});
    engine.create("1");
    EXPECT_TRUE(engine.save("host", bytes_at(host.data(), host.size())));
    EXPECT_TRUE(engine.save("field", bytes_at(field.address(), kSize)));
    engine.commit();
    fill(field.contents(), 2);
    const std::vector<std::byte> saved(field.contents().begin(), field.contents().end());
    engine.create("2");
    EXPECT_TRUE(engine.save("field", bytes_at(field.address(), kSize)));
    EXPECT_EQ(of(scope.rank)->copied_within(), kSize);
    EXPECT_TRUE(engine.save("more", bytes_at(host.data(), 1000)));
    EXPECT_TRUE(engine.save("host", bytes_at(host.data(), host.size())));
    engine.commit();
    EXPECT_EQ(engine.open(), "2");
    std::vector<std::byte> loaded(kSize);
    EXPECT_TRUE(engine.load("field", room_at(loaded.data(), kSize)));
    EXPECT_TRUE(loaded == saved);
    EXPECT_TRUE(engine.load("host", room_at(loaded.data(), kSize)));
    EXPECT_TRUE(loaded == host);
    engine.close();
  }));
}

TEST_F(DeviceSnapshot, WithoutMemoryForItOneRankOrAllGoTheOrdinaryWay) {
  for (const bool on_all : {false, true}) {
    SimulatedJob own{2};
    use(own);
    expect_returned(own.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      Application application(*of(scope.rank), engine);
      application.checkpoint(1);
      if (on_all || scope.rank == 1) of(scope.rank)->fail("allocate", 1, ErrorCode::no_space);
      engine.pause();
      application.checkpoint(2);
      EXPECT_EQ(engine.level("2") == Level::snapshot, !on_all) << "one rank's copy is enough";
      engine.resume();
      EXPECT_EQ(application.restore(), 2);
      application.checkpoint(3);
      EXPECT_EQ(application.restore(), 3);
      EXPECT_EQ(of(scope.rank)->allocated_bytes(), kSize) << "once more there was room";
    }));
    EXPECT_EQ(own.logged("rank 0: not enough GPU memory for a snapshot of region 'field' (5.0 MiB)"), on_all);
    EXPECT_TRUE(
        own.logged("rank 1: not enough GPU memory for a snapshot of region 'field' (5.0 MiB); it is written to the "
                   "store in save instead, which takes longer (logged once): free GPU memory, or set device.snapshot = "
                   "false"));
  }
}

TEST_F(DeviceSnapshot, WithoutAWorkerItHasNoEffectAndOneLineSaysSo) {
  for (const bool is_chosen : {false, true}) {
    SimulatedJob own{2};
    use(own);
    if (is_chosen) own.options.pipeline.mode = PipelineMode::inline_;
    else own.thread_support = ThreadSupport::single;
    expect_returned(own.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      Application application(*of(scope.rank), engine);
      for (const int step : {1, 2}) {
        application.checkpoint(step);
        EXPECT_GE(engine.level(std::to_string(step)), Level::local);
      }
      EXPECT_EQ(application.restore(), 2);
      EXPECT_EQ(of(scope.rank)->allocated_bytes(), 0U);
    }));
    EXPECT_EQ(own.logged("device.snapshot has no effect with pipeline.mode = inline: set that to auto or background"),
              is_chosen);
    EXPECT_EQ(own.logged("device.snapshot has no effect without background work (another message at log level info "
                         "says why there is none)"),
              !is_chosen);
  }
}

TEST_F(DeviceSnapshot, OfHostMemoryThereIsNoneAndOneLineSaysSo) {
  for (const bool on_one_rank : {false, true}) {
    SimulatedJob own{2};
    use(own);
    expect_returned(own.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      const ModelDevices::Array field(*of(scope.rank), 0, kSmall);
      const std::vector<std::byte> host(kSmall, std::byte{5});
      const void* data = on_one_rank && scope.rank == 1 ? field.address() : host.data();
      for (const std::string tag : {"1", "2"}) {
        engine.create(tag);
        EXPECT_TRUE(engine.save("field", bytes_at(data, kSmall)));
        engine.commit();
        EXPECT_TRUE(on_one_rank || engine.level(tag) >= Level::local);
      }
    }));
    EXPECT_EQ(own.logged("device.snapshot: 1 is written to the node-local stores before commit returns, because no "
                         "region of it is in GPU memory (managed memory does not count)"),
              !on_one_rank);
    EXPECT_FALSE(own.logged("device.snapshot: 2 is")) << "it is said once";
  }
}

// Nothing brings it further once the job is killed.
TEST_F(DeviceSnapshot, TheLastCheckpointOfAJobIsNone) {
  watch_signals();
  expect_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    Application application(*of(scope.rank), engine);
    application.checkpoint(1);
    engine.pause();
    application.checkpoint(2);
    EXPECT_EQ(engine.level("2"), Level::snapshot);
    if (scope.rank == 1) signals[1] = SIGTERM;
    EXPECT_TRUE(engine.need_checkpoint());
    application.checkpoint(3);
    EXPECT_EQ(engine.level("3"), Level::local);
    EXPECT_EQ(of(scope.rank)->copied_within(), kSize) << "of step 2";
    EXPECT_TRUE(engine.should_exit());
  }));
}

TEST_F(DeviceSnapshot, RoutedFilesAndAttributesAreInIt) {
  expect_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    const ModelDevices::Array field(*of(scope.rank), 0, kSize);
    for (int step = 1; step < 4; ++step) {
      fill(field.contents(), static_cast<unsigned>(step));
      engine.create(std::to_string(step), {{"step", std::int64_t{step}}});
      const Routed route = engine.route_out("notes.txt");
      job.disk.write_all(route.path, std::as_bytes(std::span("step ", 5)));
      EXPECT_TRUE(engine.save("field", bytes_at(field.address(), kSize)));
      engine.commit();
    }
    EXPECT_EQ(of(scope.rank)->copied_within(), 2 * kSize);
    EXPECT_EQ(engine.open(), "3");
    EXPECT_EQ(std::get<std::int64_t>(engine.info().attributes.at("step")), 3);
    EXPECT_EQ(job.disk.read_all(engine.route_in("notes.txt").path).size(), 5U);
    engine.close();
  }));
}

// What was kept for the regions before goes when there are others.
TEST_F(DeviceSnapshot, NoMemoryIsKeptForSizesThatAreGone) {
  expect_returned(job.start([&](RankScope& scope) {
    ModelDevices& own = *of(scope.rank);
    Engine engine = scope.make_engine();
    int step = 0;
    for (const std::size_t size : {kSize, 2 * kSize, kSmall}) {
      const ModelDevices::Array field(own, 0, size);
      for (int times = 0; times < 3; ++times) {
        engine.create(std::to_string(++step));
        EXPECT_TRUE(engine.save("field", bytes_at(field.address(), size)));
        engine.commit();
        engine.wait(std::to_string(step), Level::local);
      }
      EXPECT_EQ(own.allocated_bytes(), size);
    }
  }));
}

TEST_F(DeviceSnapshot, WhereItIsNotAskedForNothingIsAllocated) {
  job.options.device.snapshot = false;
  expect_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    Application application(*of(scope.rank), engine);
    for (const int step : {1, 2, 3}) {
      application.checkpoint(step);
      EXPECT_EQ(engine.level(std::to_string(step)), Level::local);
    }
    EXPECT_EQ(of(scope.rank)->copied_within(), 0U);
  }));
}

}  // namespace
}  // namespace kedge::faults::device_snapshot_test

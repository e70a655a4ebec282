// Regions in the memory of a GPU that are copied there first (device.snapshot): commit returns before it is sealed.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/calls/device_fixture.hpp"

namespace kedge::faults {
namespace {

constexpr std::size_t kSize = 5 * kMiB + 3;

class DeviceSnapshot : public DeviceMemory {
 protected:
  DeviceSnapshot() { use(job); }
  void use(SimulatedJob& any) {
    any.options.device.snapshot = true;
    any.options.pipeline.mode = PipelineMode::background;
    any.options.pipeline.max_pending = 1;
    any.surroundings = [this](int rank, engine::Environment& environment) {
      environment.devices = of(rank);
      environment.waits_for_worker = false;
    };
  }
};

/// A rank's application: one field on its device, and a number on the host.
class Application {
 public:
  Application(ModelDevices& devices, Engine& engine) : engine_(engine), field_(devices, 0, kSize) {}

  /// What it saves is gone when this returns.
  void save(int step, const std::string& field = "field") {
    step_ = step;
    fill(field_.contents(), static_cast<unsigned>(step));
    engine_.create(std::to_string(step));
    (void)engine_.save("step", {&step_, DataType::int32, Shape{}});
    (void)engine_.save(field, bytes_at(field_.address(), kSize));
    std::ranges::fill(field_.contents(), std::byte{0});
  }
  void checkpoint(int step) {
    save(step);
    engine_.commit();
  }
  /// The step that is found, with everything right; -1 if there is none.
  int restore(const std::string& field = "field") {
    if (!engine_.open()) return -1;
    EXPECT_TRUE(engine_.load("step", {&step_, DataType::int32, Shape{}}));
    EXPECT_TRUE(engine_.load(field, room_at(field_.address(), kSize)));
    engine_.close();
    std::vector<std::byte> wanted(kSize);
    fill(wanted, static_cast<unsigned>(step_));
    EXPECT_TRUE(std::ranges::equal(field_.contents(), wanted)) << "step " << step_;
    return step_;
  }

 private:
  Engine& engine_;
  ModelDevices::Array field_;
  int step_ = 0;
};

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
  EXPECT_FALSE(job.logged("device.snapshot")) << "all is as it was asked for";
}

}  // namespace
}  // namespace kedge::faults

// Checkpoints of GPU memory that are snapshots when commit returns (device.snapshot).
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/calls/device_fixture.hpp"

namespace kedge::faults {

inline constexpr std::size_t kSize = 5 * kMiB + 3;
inline constexpr std::size_t kSmall = 70000;  // a few pieces of the simulated disk

class DeviceSnapshot : public DeviceMemory {
 protected:
  DeviceSnapshot() { use(job); }
  void use(SimulatedJob& any) {
    any.options.device.snapshot = true;
    any.options.pipeline.mode = PipelineMode::background;
    any.options.pipeline.max_pending = 1;
    any.surroundings = [this](int rank, engine::EngineEnvironment& environment) {
      environment.devices = of(rank);
      environment.waits_for_worker = false;
    };
  }
  /// From here on `signals` are what the ranks of `job` get.
  void watch_signals() {
    job.surroundings = [this, ordinary = job.surroundings](int rank, engine::EngineEnvironment& environment) {
      ordinary(rank, environment);
      environment.watch_signals = [this, rank](const auto&, const auto&) {
        return [this, rank] { return signals.at(static_cast<std::size_t>(rank)).load(); };
      };
    };
  }
  std::array<std::atomic<int>, 2> signals{};
};

/// A rank's application: one field on its device, and a number on the host.
class Application {
 public:
  Application(ModelDevices& devices, Engine& engine, std::size_t size_bytes = kSize)
      : engine_(engine), size_bytes_(size_bytes), field_(devices, 0, size_bytes) {}

  /// What it saves is gone when this returns.
  void save(
      int step, const std::function<void()>& before_field = [] {}) {
    step_ = step;
    fill(field_.contents(), static_cast<unsigned>(step));
    engine_.create(std::to_string(step));
    (void)engine_.save("step", {&step_, DataType::int32, Shape{}});
    before_field();
    (void)engine_.save("field", bytes_at(field_.address(), size_bytes_));
    std::ranges::fill(field_.contents(), std::byte{0});
  }
  void checkpoint(int step) {
    save(step);
    engine_.commit();
  }
  /// The step that is found, with everything right; -1 if there is none.
  int restore() {
    if (!engine_.open()) return -1;
    EXPECT_TRUE(engine_.load("step", {&step_, DataType::int32, Shape{}}));
    EXPECT_TRUE(engine_.load("field", room_at(field_.address(), size_bytes_)));
    engine_.close();
    std::vector<std::byte> wanted(size_bytes_);
    fill(wanted, static_cast<unsigned>(step_));
    EXPECT_TRUE(std::ranges::equal(field_.contents(), wanted)) << "step " << step_;
    return step_;
  }

 private:
  Engine& engine_;
  std::size_t size_bytes_;
  ModelDevices::Array field_;
  int step_ = 0;
};

}  // namespace kedge::faults

// A parallel filesystem on which removing takes its time.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "base/clock.hpp"
#include "harness/forwarding_file_system.hpp"

namespace kedge::faults {

/// A prefix on which each removal of a file takes so long.
class SlowToRemove final : public ForwardingFileSystem {
 public:
  SlowToRemove(std::shared_ptr<fs::FileSystem> inner, std::shared_ptr<Clock> clock, double seconds)
      : ForwardingFileSystem(std::move(inner)), clock_(std::move(clock)), seconds_(seconds) {}
  void remove(const std::string& path) override {
    if (path.starts_with("/prefix/") && inner().status(path))
      clock_->sleep_for(std::chrono::duration<double>(seconds_));
    inner().remove(path);
  }

 private:
  std::shared_ptr<Clock> clock_;
  double seconds_;
};

}  // namespace kedge::faults

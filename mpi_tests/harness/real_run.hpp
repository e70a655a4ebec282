// A run of one process in real storage and real time.
#pragma once

#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>
#include <string>
#include <system_error>

#include "kedge/options.hpp"

namespace kedge::faults {

/// Every commit is flushed in the background; at the end its files are removed.
struct RealRun {
  explicit RealRun(const std::string& name)
      : directory(testing::TempDir() + "kedge-" + name + "-" + std::to_string(::getpid())) {
    std::filesystem::create_directories(directory + "/store");
    options.run = name;
    options.store.path = directory + "/store";
    options.persistent.path = directory + "/prefix";
    options.persistent.every = 1;
    options.pipeline.mode = PipelineMode::background;
    options.log.level = LogLevel::error;
  }
  ~RealRun() {
    std::error_code failed;
    std::filesystem::remove_all(directory, failed);
    EXPECT_FALSE(failed) << directory << ": " << failed.message() << "; is a thread of an engine still writing?";
  }
  RealRun(const RealRun&) = delete;
  RealRun& operator=(const RealRun&) = delete;

  std::string directory;
  Options options;
};

}  // namespace kedge::faults

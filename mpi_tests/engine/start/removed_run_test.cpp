// A run that is removed from its prefix while a job of it is alive, as kedge drop --run does it.

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/start/right_run.hpp"
#include "harness/engine_checks.hpp"
#include "harness/forwarding_file_system.hpp"
#include "persist/prefix_runs.hpp"

namespace kedge::faults::removed_run_test {
namespace {

constexpr const char* kPrefix = "/case/checkpoints";

/// Calls `seen` with each path that is removed, before it is.
class Watched final : public ForwardingFileSystem {
 public:
  Watched(std::shared_ptr<fs::FileSystem> inner, std::function<void(const std::string&)> seen)
      : ForwardingFileSystem(std::move(inner)), seen_(std::move(seen)) {}
  void remove(const std::string& path) override {
    seen_(path);
    inner().remove(path);
  }

 private:
  std::function<void(const std::string&)> seen_;
};

class RemovedRun : public RightRun {
 protected:
  [[nodiscard]] std::size_t left() {
    std::size_t count = 0;
    for (const auto& [path, entry] : job.disk.snapshot()) {
      const bool is_shared = path.ends_with("/.kedge") || path.ends_with("/latest");  // all runs'
      if (path.starts_with(std::string(kPrefix) + "/") && !is_shared) ++count;
    }
    return count;
  }
};

TEST_F(RemovedRun, WhatWasPublishedSinceItWasListedGoesToo) {
  commit_steps(job, {{"a", 1}});
  const auto listed = persist::find_run_on_prefix(*job.disk.view(0), kPrefix, "main");
  EXPECT_EQ(listed.entries.size(), 1U);
  commit_steps(job, {{"b", 2}});
  const auto removed = persist::remove_run(job.disk.view(0), kPrefix, "main");
  EXPECT_EQ(removed.entries.size(), 2U);
  EXPECT_EQ(left(), 0U) << "of checkpoints and records";
}

/// At no moment of the removal may a job that was overtaken think that it is the newest start.
TEST_F(RemovedRun, AJobThatIsAlivePublishesNothingAtAnyMoment) {
  // In alphabetical order the note of the tenth start comes before that of the ninth.
  for (int i = 0; i < 8; ++i) (void)reopen(job);
  OnEachRank met(job.ranks);
  int tries = 0;
  expect_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    commit_step(engine, scope.rank, "a", 1);
    scope.communicator.barrier(Deadline::never());
    if (scope.rank == 0) {
      const auto records = persist::records_directory(kPrefix, "main");
      const auto watched = std::make_shared<Watched>(job.disk.view(0), [&](const std::string& path) {
        if (!path.starts_with(records + "/")) return;
        ++tries;
        bool overtaken = false;  // by the records, as they are now
        for (const std::string& name : job.disk.view(0)->list(records)) overtaken |= name == "begun-10";
        EXPECT_TRUE(overtaken || !job.disk.view(0)->status(records + "/begun-9")) << "before " << path << " is removed";
      });
      (void)persist::remove_run(watched, kPrefix, "main");
    }
    scope.communicator.barrier(Deadline::never());
    commit_step(engine, scope.rank, "b", 2);
    met.put(scope.rank, failure_of([&] { commit_step(engine, scope.rank, "c", 3); }));
  }));
  EXPECT_GE(tries, 3);
  const auto failure = met.same();
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->code, ErrorCode::bad_state) << "b's flush got busy: the engine is dead";
  EXPECT_EQ(left(), 0U);
}

/// A job that checked that it is the newest just before it was overtaken may still publish once.
TEST_F(RemovedRun, WhatIsPublishedWhileItIsRemovedGoesToo) {
  commit_steps(job, {{"a", 1}, {"b", 2}});
  const std::string late = kPrefix + std::string("/") +
                           persist::find_run_on_prefix(*job.disk.view(0), kPrefix, "main").entries.front().directory;
  const auto before = job.disk.snapshot();
  std::vector<std::pair<std::string, std::vector<std::byte>>> files;
  for (const auto& [path, entry] : before) {
    if (path.starts_with(late + "/") && entry.status.kind == fs::FileStatus::Kind::file)
      files.emplace_back(path, job.disk.read_all(path));
  }
  job.disk.remove_all(late);
  bool published = false;
  const auto watched = std::make_shared<Watched>(job.disk.view(0), [&](const std::string& path) {
    if (std::exchange(published, true)) return;
    EXPECT_TRUE(path.find("/a.") != std::string::npos) << path;
    job.disk.make_directories(late + "/data/0", 0755);
    for (const auto& [name, bytes] : files) job.disk.write_all(name, bytes);
  });
  EXPECT_EQ(persist::remove_run(watched, kPrefix, "main").entries.size(), 2U);
  EXPECT_TRUE(published);
  EXPECT_EQ(left(), 0U);
}

}  // namespace
}  // namespace kedge::faults::removed_run_test

// HDF5 is called by the application's thread alone, within Kedge's calls: an application whose HDF5 is not made for
// threads may go on using it while commits are protected and flushed.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "harness/flush_fixture.hpp"
#include "harness/forwarding_file_system.hpp"
#include "harness/several_starts.hpp"

namespace kedge::faults {
namespace {

/// Threads that did something.
class Threads {
 public:
  void add_this() {
    const std::lock_guard guard(mutex_);
    ids_.insert(std::this_thread::get_id());
  }
  [[nodiscard]] std::set<std::thread::id> all() {
    const std::lock_guard guard(mutex_);
    return ids_;
  }

 private:
  std::mutex mutex_;
  std::set<std::thread::id> ids_;
};

/// Lives on: the library calls itself when the process ends.
Threads& callers_of_hdf5() {
  static Threads& threads = *new Threads;
  return threads;
}

template <class Function>
Function* library_function(const char* name) {
  callers_of_hdf5().add_this();
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

}  // namespace
}  // namespace kedge::faults

// In the place of the library's own, for all of this program.
extern "C" {
int H5open() { return kedge::faults::library_function<int()>("H5open")(); }
int H5Eset_auto2(std::int64_t stack, void* function, void* data) {
  return kedge::faults::library_function<int(std::int64_t, void*, void*)>("H5Eset_auto2")(stack, function, data);
}
std::int64_t H5Pcreate(std::int64_t kind) {
  return kedge::faults::library_function<std::int64_t(std::int64_t)>("H5Pcreate")(kind);
}
}

namespace kedge::faults {
namespace {

/// Notes who makes containers on the prefix.
class NotingFileSystem final : public ForwardingFileSystem {
 public:
  NotingFileSystem(std::shared_ptr<fs::FileSystem> inner, Threads& flushers)
      : ForwardingFileSystem(std::move(inner)), flushers_(flushers) {}
  [[nodiscard]] std::unique_ptr<fs::File> create(const std::string& path, std::uint32_t mode) override {
    if (path.starts_with("/prefix/") && path.find("/rank-") != std::string::npos) flushers_.add_this();
    return inner().create(path, mode);
  }

 private:
  Threads& flushers_;
};

class Hdf5Thread : public FlushFixture {};

TEST_F(Hdf5Thread, IsNeverTheWorkers) {
  PersistentJob job(4);
  Threads flushers;
  job.options.pipeline.mode = PipelineMode::background;
  job.surroundings = [&](int /*rank*/, engine::EngineEnvironment& environment) {
    environment.waits_for_worker = false;
    environment.file_system = std::make_shared<NotingFileSystem>(environment.file_system, flushers);
  };
  expect_all_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    State state;
    std::vector<double> values(100, scope.rank);
    for (int step = 1; step <= 4; ++step) {
      state.add("values-" + std::to_string(step), values);  // a structure that is new in each checkpoint
      engine.checkpoint("step-" + std::to_string(step), state);
    }
    engine.finalize();
  }));
  const auto callers = callers_of_hdf5().all();
  const auto workers = flushers.all();
  EXPECT_FALSE(callers.empty()) << "HDF5 is called in ways that this test does not see";
  EXPECT_EQ(workers.size(), 4U);
  std::vector<std::thread::id> both;
  std::ranges::set_intersection(callers, workers, std::back_inserter(both));
  EXPECT_TRUE(both.empty());
}

}  // namespace
}  // namespace kedge::faults

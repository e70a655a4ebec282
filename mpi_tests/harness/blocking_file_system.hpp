// A prefix whose writers can be held up, to look at what happens meanwhile.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "harness/forwarding_file_system.hpp"

namespace kedge::faults {

/// Open at first.
class Gate {
 public:
  void close() {
    const std::lock_guard guard(mutex_);
    is_open_ = false;
  }
  void open() {
    {
      const std::lock_guard guard(mutex_);
      is_open_ = true;
    }
    changed_.notify_all();
  }
  [[nodiscard]] bool is_open() {
    const std::lock_guard guard(mutex_);
    return is_open_;
  }
  /// Returns when it is open.
  void pass() {
    std::unique_lock lock(mutex_);
    ++arrived_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return is_open_; });
    --arrived_;
  }
  /// Returns when so many are waiting to pass.
  void await(int arrived) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return arrived_ >= arrived; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_open_ = true;
  int arrived_ = 0;
};

/// Every container that is made on the prefix passes the gate.
class BlockingFileSystem final : public ForwardingFileSystem {
 public:
  BlockingFileSystem(std::shared_ptr<fs::FileSystem> inner, Gate& gate)
      : ForwardingFileSystem(std::move(inner)), gate_(gate) {}
  [[nodiscard]] std::unique_ptr<fs::File> create(const std::string& path, std::uint32_t mode) override {
    if (path.find("/prefix/") != std::string::npos && path.find("/rank-") != std::string::npos) gate_.pass();
    return inner().create(path, mode);
  }

 private:
  Gate& gate_;
};

}  // namespace kedge::faults

// Locks of a node-local store between real processes, which are killed, stopped or suspended.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <thread>
#include <utility>

#include "base/text.hpp"
#include "harness/several_starts.hpp"
#include "store/store_lock.hpp"

namespace kedge::faults::real_locks_test {
namespace {

/// A child process that holds the lock of incarnation 1 until it is killed.
class Holder {
 public:
  explicit Holder(const std::string& directory) {
    std::array<int, 2> ready{};
    if (::pipe(ready.data()) != 0) return;
    pid_ = ::fork();
    if (pid_ == 0) {
      const auto clock = system_clock();
      const store::StoreLock lock(fs::posix_file_system(), directory, 1, 0, *clock, 0.0);
      (void)!::write(ready[1], "x", 1);
      while (true) ::pause();
    }
    char byte = 0;
    (void)!::read(ready[0], &byte, 1);
    ::close(ready[0]);
    ::close(ready[1]);
  }
  ~Holder() { kill(); }
  Holder(const Holder&) = delete;
  Holder& operator=(const Holder&) = delete;

  void stop() const { ::kill(pid_, SIGSTOP); }
  void kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  [[nodiscard]] pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
};

class RealLocks : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "kedge-locks-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    directory = pattern;
  }
  void TearDown() override {
    for (const auto& name : system->list(directory)) system->remove(fs::join(directory, name));
    system->remove(directory);
  }
  std::optional<Failure> try_to_start(std::uint64_t incarnation, double timeout_s) {
    try {
      const store::StoreLock lock(system, directory, incarnation, 0, *clock, timeout_s);
    } catch (const Error& error) {
      return error.failure();
    }
    return std::nullopt;
  }
  std::shared_ptr<fs::FileSystem> system = fs::posix_file_system();
  std::shared_ptr<Clock> clock = system_clock();
  std::string directory;
};

TEST_F(RealLocks, AStoppedHolderIsNamedAndAKilledOneIsGone) {
  Holder holder(directory);
  holder.stop();
  const auto failure = try_to_start(2, 0.2);
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->code, ErrorCode::busy);
  EXPECT_TRUE(says(failure->message, {"incarnation 1, rank 0", compose("process {}", holder.pid())}))
      << failure->message;
  holder.kill();
  // What the dead one left shows that it is dead, until this start says that it has begun.
  store::StoreLock next(system, directory, 2, 0, *clock, 0);
  EXPECT_TRUE(system->status(directory + "/lock.1.0"));
  next.remove_older();
  EXPECT_FALSE(system->status(directory + "/lock.1.0"));
}

TEST_F(RealLocks, AHolderThatDiesWhileItIsWaitedForLetsTheNextIn) {
  Holder holder(directory);
  std::thread killer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    holder.kill();
  });
  EXPECT_FALSE(try_to_start(2, 30.0));
  killer.join();
}

/// Time that passes when somebody sleeps, and in which the process is suspended once.
class SuspendedClock final : public Clock {
 public:
  explicit SuspendedClock(std::function<void()> at_sixth_sleep) : at_sixth_sleep_(std::move(at_sixth_sleep)) {}
  std::int64_t wall_ns() override { return 0; }
  double seconds() override { return now_s_; }
  void sleep_for(std::chrono::duration<double> wait) override {
    now_s_ += wait.count();
    if (++sleeps_ == 3) now_s_ += 3600;
    if (sleeps_ == 6) at_sixth_sleep_();
  }

 private:
  std::function<void()> at_sixth_sleep_;
  double now_s_ = 0;
  int sleeps_ = 0;
};

TEST_F(RealLocks, AStartThatIsSuspendedWaitsOn) {
  Holder holder(directory);
  clock = std::make_shared<SuspendedClock>([&] { holder.kill(); });
  EXPECT_FALSE(try_to_start(2, 1.0));
  clock = std::make_shared<SuspendedClock>([] {});
  const Holder another(directory);
  const auto failure = try_to_start(2, 1.0);
  ASSERT_TRUE(failure) << "it ends all the same";
  EXPECT_EQ(failure->code, ErrorCode::busy);
}

TEST_F(RealLocks, AnOlderStartIsTurnedAwayAtOnce) {
  const Holder holder(directory);  // incarnation 1
  const auto failure = try_to_start(0, 30.0);
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->code, ErrorCode::busy);
  EXPECT_TRUE(says(failure->message, {"a newer start"})) << failure->message;
}

TEST_F(RealLocks, AnOlderLockThatCannotBeOpenedIsNamedWithWhatToDo) {
  const std::string lock = fs::join(directory, "lock.1.5");
  ASSERT_EQ(::symlink("/dev/null", lock.c_str()), 0);
  const auto failure = try_to_start(2, 0.0);
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->code, ErrorCode::io);
  EXPECT_EQ(failure->path, lock);
  EXPECT_TRUE(says(failure->message, {"symbolic link", "remove this file"})) << failure->message;
}

}  // namespace
}  // namespace kedge::faults::real_locks_test

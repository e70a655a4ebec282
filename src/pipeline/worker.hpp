// A thread in the background: takes commits one after the other through the same work.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "comm/group.hpp"
#include "kedge/communicator.hpp"
#include "kedge/error.hpp"
#include "pipeline/stage.hpp"
#include "pipeline/stage_costs.hpp"

namespace kedge::pipeline {

/// What is to be done with a commit.
struct Job {
  CommitFiles files;
  std::unique_ptr<PendingSeal> unsealed = {};  ///< if sealing is the first stage
  bool protect = false;
  bool flush = false;
  double submitted_s = 0;  ///< by the engine's clock
  CommitBytes bytes = {};
  double blocked_s = 0;  ///< how long the application waited for this commit
  double prepare_s = 0;  ///< what Stage::prepare of the flush took
  bool is_last = false;  ///< its flush was left for the end
};

/// What the worker's thread does. Everything is COLLECTIVE, on `channel`; what it throws ends the worker.
struct Duties {
  std::function<void(const comm::Group& channel, Job& job)> work;
  /// After each job, when nobody waits for it any more and before the next one.
  std::function<void(const comm::Group& channel)> tidy;
  /// One step of the upkeep; false if nothing is left of it.
  std::function<bool(const comm::Group& channel)> upkeep_step;
};

/// What a worker sends on.
struct Channel {
  comm::Group group;
  /// Nobody but the thread that waits moves its messages: when that has ended, none is under way.
  bool ends_with_thread = false;
};

/// What becomes of the upkeep when somebody waits for the worker.
enum class Rest : std::uint8_t {
  awaited,   ///< it is waited for
  given_up,  ///< it is given up, as far as it is only worth something
  ignored,   ///< it goes on
};

/// What a wait came to.
struct Waited {
  std::optional<Failure> failure;  ///< why the worker has ended, if it has
  bool in_time = true;             ///< what was waited for has come
};

/// Every rank submits the same jobs in the same order. What the work throws ends the worker; jobs that are left are
/// dropped then. Upkeep is what has time: it goes on, step by step, while there is no job. Rank 0 says before each step
/// whether there is one, so that all ranks do the same. All calls but the constructor are local, and made by one
/// thread, unless they say that they are the worker's own.
class Worker {
 public:
  /// COLLECTIVE, on `group`. The work communicates over `channel` alone, which nobody else uses. Throws the same Error
  /// on every rank if any has no thread for it.
  /// The thread begins with `begin`.
  Worker(const comm::Group& group, Channel channel, std::function<void()> begin, Duties duties);
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  /// Waits for the thread, unless stop() gave up on it.
  ~Worker();

  void submit(Job job);
  /// There is upkeep, by Duties::upkeep_step; nothing is under way. `to_protect`: the commit that it protects, unless
  /// none.
  void submit_upkeep(const Id128& to_protect);
  /// How many jobs are not done.
  [[nodiscard]] std::size_t pending() const;
  /// Whether no job is, and no commit is to be protected by the upkeep.
  [[nodiscard]] bool is_idle() const;
  /// What they have still to do, at most.
  [[nodiscard]] Ahead ahead() const;
  /// Returns when fewer jobs than `limit` are not done, or when the worker has ended.
  [[nodiscard]] Waited wait_until_below(std::size_t limit);
  /// Returns when no job is left, and nothing that follows one; and what `rest` says of the upkeep. Likewise.
  [[nodiscard]] Waited wait_until_idle(Rest rest, Deadline deadline);
  /// Whether it is in a job that is not done, or is to be protected by the upkeep; or was perhaps, when the worker
  /// failed.
  [[nodiscard]] bool is_under_way(const Id128& commit_id) const;
  /// Returns when this commit is not under way, or is what it is to become: that is asked after each step.
  [[nodiscard]] Waited wait_for(const Id128& commit_id, const std::function<bool()>& enough, Deadline deadline);
  /// Returns when this is so, which is asked after each step, or stop() was called. Likewise.
  [[nodiscard]] Waited wait_until(const std::function<bool()>& enough);
  /// From the worker's thread, within a job: changes it, which others may look at.
  template <class Change>
  void change(const Change& change) {
    const std::lock_guard guard(state_->mutex);
    change();
  }
  /// From the worker's thread, within a job: a step is done.
  void made_progress() { state_->done->raise(); }
  /// From the worker's thread, within a step of the upkeep: whether there is something better to do on this rank.
  [[nodiscard]] bool gives_way() const;
  /// Likewise: whether what is only worth something is given up here.
  [[nodiscard]] bool upkeep_is_given_up() const;
  /// From the worker's thread: begins and ends what sends from files, which must outlive it if it is cut.
  void set_sending(bool begins);
  /// From the worker's thread: what upkeep was to protect is protected, or will not be.
  void upkeep_protected();
  /// COLLECTIVE, on `channel`, from the worker's thread, within a job. Waits before the job goes on; not so long if
  /// another job is submitted, or somebody waits for room. Whether it came to its end: rank 0 decides.
  [[nodiscard]] bool wait_before_retry(const comm::Group& channel, comm::Group::Seconds wait);
  /// Why the worker has ended; nothing if it has not, or stop() ended it.
  [[nodiscard]] std::optional<Failure> failure() const;

  /// No other job begins until skip_flushes(). How many have begun, since the first.
  [[nodiscard]] std::uint64_t hold();
  /// Jobs after the first `begun` ones flush no more, and go on. Which commits that concerns.
  [[nodiscard]] std::vector<CommitHead> skip_flushes(std::uint64_t begun);

  /// How a worker was stopped.
  enum class Stopped : std::uint8_t {
    idle,      ///< nothing was under way, or only reading, or nothing of it is any more
    cut,       ///< a job was, or has failed: messages may still come to and go from its memory
    not_ended  ///< not in time: it goes on with all that its work refers to
  };
  /// Ends it without communicating, also in the middle of a job. Nothing may be submitted after it. How it was stopped
  /// the first time.
  [[nodiscard]] Stopped stop(Deadline deadline);

 private:
  /// Shared with the thread, which may outlive the worker.
  struct State {
    std::mutex mutex;
    std::deque<Job> jobs;     ///< the first one is under way, once it has begun
    std::uint64_t begun = 0;  ///< since the first
    std::uint64_t ended = 0;
    bool impatient = false;  ///< somebody waits for room
    bool held = false;
    bool tidies = false;      ///< what follows a job is under way
    bool has_upkeep = false;  ///< there is upkeep
    bool given_up = false;    ///< what of it is only worth something, is given up
    bool sends = false;       ///< it sends from files
    Id128 to_protect;         ///< by the upkeep; none: nothing
    bool stopping = false;
    std::optional<Failure> failure;
    std::unique_ptr<Communicator::Signal> submitted;
    std::unique_ptr<Communicator::Signal> done;
  };
  [[nodiscard]] static bool has(const State& state, const Id128& commit_id);
  /// What comes next.
  enum class Turn : std::uint8_t { ended, job, step };

  [[nodiscard]] bool must_go_on() const;
  [[nodiscard]] Stopped stop_thread(Deadline deadline);
  static void run(State& state, const comm::Group& channel, const Duties& duties);
  [[nodiscard]] static Turn next_turn(State& state, const comm::Group& channel);
  [[nodiscard]] static Turn wait_for_turn(State& state, bool of_job);
  [[nodiscard]] static bool do_job(State& state, const comm::Group& channel, const Duties& duties);
  [[nodiscard]] static bool do_step(State& state, const comm::Group& channel, const Duties& duties);
  template <class Change>
  [[nodiscard]] static bool end_turn(State& state, const std::optional<Failure>& failure, const Change& change);
  void be_impatient(bool impatient);
  template <class Condition>
  [[nodiscard]] Waited wait_while_not(Condition&& condition, Deadline deadline);

  std::shared_ptr<State> state_;
  Channel channel_;
  std::unique_ptr<Communicator::Thread> thread_;
  std::optional<Stopped> stopped_;
};

}  // namespace kedge::pipeline

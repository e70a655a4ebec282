// Decides which commit goes to which level, and when; runs the stages that take it there.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "comm/group.hpp"
#include "commits/ledger.hpp"
#include "fs/paced.hpp"
#include "kedge/error.hpp"
#include "kedge/options.hpp"
#include "pipeline/commit_lines.hpp"
#include "pipeline/completions.hpp"
#include "pipeline/flush_news.hpp"
#include "pipeline/flush_record.hpp"
#include "pipeline/lost_snapshots.hpp"
#include "pipeline/metrics.hpp"
#include "pipeline/open_channel.hpp"
#include "pipeline/owed_outputs.hpp"
#include "pipeline/pause.hpp"
#include "pipeline/protect_stage.hpp"
#include "pipeline/stage.hpp"
#include "pipeline/stage_costs.hpp"
#include "pipeline/turns.hpp"
#include "pipeline/upkeep.hpp"
#include "pipeline/worker.hpp"
#include "store/node_store.hpp"
#include "store/retirement.hpp"

namespace kedge::pipeline {

/// When commits are due. The same on every rank.
struct Schedule {
  std::uint64_t protect_every = 1;  ///< every so many commits; 0: never by itself
  std::uint64_t flush_every = 0;    ///< likewise
  std::uint32_t keep = 1;           ///< commits that the stores keep
  bool flush_at_end = true;         ///< the newest, when the job ends, if any is flushed by itself
  ChannelSettings channel;
  std::uint32_t max_pending = 1;  ///< in the background: commits under way, with the one being written
  WhenFull when_full = WhenFull::block;
  bool waits = false;                  ///< in the background: submit() returns when nothing is under way
  std::string cores = {};              ///< on which a worker runs; empty: on any
  std::uint64_t sent_bytes_per_s = 0;  ///< of a worker, on this node; 0: without limit
  std::uint32_t flush_retries = 0;     ///< in the background
  bool snapshots = false;              ///< commits may be submitted before they are sealed
  std::string run = {};                ///< whose name the log gives beside commits; empty: of none
};

/// What became of a commit that was submitted. Each failure is the same on every rank; the commit stands without.
struct Submitted {
  std::optional<Failure> not_protected;
  std::optional<Failure> not_persistent;
  std::uint64_t flush_tries = 1;
  std::optional<double> protected_after_s = {};   ///< since it was submitted
  std::optional<double> persistent_after_s = {};  ///< likewise
};

/// What a commit has cost until it is submitted.
struct CommitCost {
  CommitBytes bytes;
  double blocked_s = 0;
};

/// Superseded commits leave the stores in these calls and nowhere else: what takes a commit to a higher level also
/// retires those that it supersedes. Inline, every call returns when its stages have run. In the background, submit()
/// and continue_from() only hand it to a worker, and other calls wait for what is under way. All calls are COLLECTIVE,
/// unless they say that they are local, and throw what ends communication.
class Pipeline {
 public:
  /// COLLECTIVE. All that is referred to must outlive it.
  Pipeline(comm::Group group, store::NodeStore& store, commits::Ledger& ledger, std::unique_ptr<ProtectStage> protect,
           std::unique_ptr<Stage> flush, Schedule schedule, Pause& pause, Clock& clock, const Log& log,
           Metrics& metrics, store::NodeRecords* flush_records);

  /// A commit that was just sealed: takes it as far as its turn says, or to `level` if that is given. What failed is
  /// tried again with a later one. In the background nothing has become of it when this returns, except that a flush
  /// could not be prepared. Logs what became of it, once that is known.
  [[nodiscard]] Submitted submit(const CommitHead& commit, const CommitCost& cost, std::optional<Level> level = {});
  /// A commit that the ledger knows as a snapshot, while is_idle() on all ranks: the worker seals it first, then as
  /// submit(). If that fails, it is no commit, and its turns are the next one's.
  void submit_unsealed(const CommitHead& commit, const CommitCost& cost, std::unique_ptr<PendingSeal> unsealed);
  /// A commit that was just opened: makes it as well protected as a fresh one, if commits are protected at all. If it
  /// is not persistent, the next commit is due for the prefix. `unread`: see recovery::Opened.
  void continue_from(const CommitHead& commit, bool persistent, Unread unread);
  /// Whether there is a worker.
  [[nodiscard]] bool has_worker() const noexcept { return worker_ != nullptr; }
  /// Nothing is under way when it returns, and what was left to do after an open is given up as far as that costs no
  /// protection.
  void quiesce();
  /// Nothing was opened, and the ledger knows what the stores hold: makes room before the first commit.
  void make_room() {
    outputs_.found();
    retire(store::Reach::all);
  }
  /// Nothing was opened, and the ledger knows what the stores hold: what is owed is flushed with the next commits.
  void find_owed() { outputs_.found(); }
  /// Takes the newest commit of this tag to a level now. Throws why it cannot be reached: not_found if the stores have
  /// none, invalid_argument if the options rule the level out.
  void require(std::string_view tag, Level level);
  /// Local. open discards what is newer: finalize need not report a snapshot that is lost.
  void ignore_lost_snapshot() noexcept { lost_snapshots_.told_of_all(); }
  /// Why the newest commit is lost: it was a snapshot that could not be sealed, require() has not said so yet, and
  /// nobody forgoes it. The same on all ranks.
  [[nodiscard]] std::optional<Failure> lost_snapshot() const;
  /// The job ends: its newest commit goes to the prefix, if any does. A failure is logged. The last call.
  void finish();
  /// What became of the end, the same on all ranks.
  enum class Finished : std::uint8_t {
    in_place,     ///< the newest commit is where it belongs
    not_flushed,  ///< it could not be flushed: that was logged
    in_the_midst  ///< not in time: something is under way
  };
  /// Likewise, in the background. Inline, what is begun is completed.
  [[nodiscard]] Finished finish_within(Deadline deadline);
  /// Local. After stop(): whoever waits for a commit hears that it does not get any further. The last call.
  void give_up() { completions_.deliver_all(); }

  // Local: what the last save of a job is planned with.

  /// The highest level that commits are taken to by themselves.
  [[nodiscard]] Level highest_level() const;
  /// Whether commits are protected by themselves.
  [[nodiscard]] bool protects() const { return turns_.protects() && protect_->is_possible(); }
  [[nodiscard]] StageCosts costs() const { return timer_.costs(worker_ ? worker_->ahead() : Ahead{}); }
  /// How many seconds the last submit() spent in stages.
  [[nodiscard]] double within_submit_s() const noexcept { return within_submit_s_; }

  /// Local. Whether a commit of these regions can be sealed in the background as far as its manifest is concerned.
  [[nodiscard]] bool can_prepare_in_background(std::span<const format::PlacedRegion> regions,
                                               const Attributes& attributes) const;
  /// Local. Whether there is a worker, and no commit is under way or still to be protected after it was opened.
  [[nodiscard]] bool is_idle() const { return worker_ && worker_->is_idle(); }

  // Local. What a worker met that ends the engine is to be brought to the call that all ranks begin with.

  /// Returns when another commit may be written, unless pipeline.when_full says otherwise. Why none may.
  [[nodiscard]] std::optional<Failure> wait_for_room();
  /// Returns when no commit is a snapshot any more, and its manifest is made. Why the worker has ended, if it has.
  [[nodiscard]] std::optional<Failure> wait_until_sealed();
  /// Whether a commit that is written now would be one too many.
  [[nodiscard]] bool is_full() const { return worker_ && worker_->pending() >= schedule_.max_pending; }
  /// Whether a worker may be copying from devices; from any thread.
  [[nodiscard]] bool is_sealing() const noexcept { return is_sealing_; }
  /// COLLECTIVE. What is not flushed yet is not going to be, but for what has begun anywhere; returns when another
  /// commit may be written.
  void skip_flushes();
  /// Returns when the newest commit of this tag has the level, or is not under way.
  [[nodiscard]] Waited wait_for(std::string_view tag, Level level, Deadline deadline);
  /// `callback` hears what becomes of the newest commit of this tag. Throws not_found.
  void on_complete(std::string_view tag, Level level, Completions::Callback callback);
  /// Calls back who can be told something; never throws Error.
  void deliver() { completions_.deliver(); }
  /// Local. Whether one of them is what is running now: on this rank, and on others perhaps not.
  [[nodiscard]] bool calls_back() const noexcept { return completions_.calls(); }
  /// Returns when nothing is under way: what is known of commits is then the same on every rank, unless `rest` leaves
  /// something.
  [[nodiscard]] Waited wait_until_idle(Rest rest = Rest::awaited, Deadline deadline = Deadline::never());
  [[nodiscard]] std::optional<Failure> failure() const { return worker_ ? worker_->failure() : std::nullopt; }
  /// Commits under way; from any thread.
  [[nodiscard]] std::size_t pending() const { return worker_ ? worker_->pending() : 0; }
  /// Without communicating, and perhaps in the middle of something.
  [[nodiscard]] Worker::Stopped stop(Deadline deadline) {
    pause_.end();
    return worker_ ? worker_->stop(deadline) : Worker::Stopped::idle;
  }

 private:
  void start_worker(OpenChannel channel);
  [[nodiscard]] comm::Group patient(const comm::Group& group, std::uint64_t own_bytes) const;
  [[nodiscard]] Submitted pin_container(const comm::Group& group, Job& job);
  [[nodiscard]] Submitted process(const comm::Group& group, Job& job, store::Reach reach);
  [[nodiscard]] std::optional<Failure> flush(const comm::Group& group, Job& job, store::Reach reach,
                                             std::uint64_t& tries);
  void work(const comm::Group& channel, Job& job);
  [[nodiscard]] bool seal(const comm::Group& channel, Job& job);
  void prepare_in_background(const comm::Group& channel, Job& job);
  void not_sealed(const comm::Group& channel, const Job& job, const Failure& failure);
  void throw_if_not_sealed(std::string_view tag);
  void tidy(const comm::Group& channel);
  [[nodiscard]] bool run_upkeep_step(const comm::Group& channel);
  void protect_opened(const comm::Group& channel);
  void read_on(const comm::Group& channel);
  void handle_damage(const comm::Group& channel, const UnreadCommit& what, const ReadFiles& read, const Failure& first);
  void handle_damaged_container(const comm::Group& channel, const CommitHead& commit, const Failure& first);
  void note(const Job& job, const Submitted& submitted);
  void log_outcome(const Job& job, const Submitted& processed);
  void warn(const CommitHead& commit, const Submitted& processed);
  void warn_not_flushed(const CommitHead& commit, const Failure& failure, std::uint64_t tries);
  void record(const CommitHead& commit, Level level, const CommitBytes& bytes, std::optional<double> after_s);
  void record(const CommitHead& commit, Level level, const Failure& failure, std::uint64_t tries);
  [[nodiscard]] std::optional<Failure> run(const comm::Group& group, Stage& stage, const CommitHead& commit,
                                           store::Reach reach);
  [[nodiscard]] std::optional<Failure> run_timed(Stage& stage, const comm::Group& group, const CommitFiles& files,
                                                 double prepare_s, store::Reach reach);
  /// What the worker could not do, and a later commit brings along.
  struct ToMakeUpFor {
    bool flush = false;   ///< of a checkpoint
    bool output = false;  ///< one is owed
  };
  [[nodiscard]] ToMakeUpFor take_failed();
  void decide(Job& job, std::optional<Level> level, bool makes_up_for_flush);
  [[nodiscard]] Protections find_protections(const CommitHead& commit);
  [[nodiscard]] std::optional<Failure> protect_again(const comm::Group& group, const CommitHead& commit,
                                                     store::Reach reach);
  [[nodiscard]] std::optional<Failure> protect_in_room(const comm::Group& group, const CommitHead& commit,
                                                       store::Reach reach);
  [[nodiscard]] std::vector<CommitHead> owed_at_end() const;
  void flush_at_end(const std::vector<CommitHead>& owed);
  [[nodiscard]] std::vector<CommitHead> owed_outputs() const;
  void flush_owed_outputs();
  void hand_over_owed_output();
  [[nodiscard]] bool hand_over(const CommitHead& commit);
  void log_flush(const CommitHead& commit, const std::optional<Failure>& failure);
  [[nodiscard]] bool drop_former_copies(const comm::Group& group, const CommitHead& commit);
  void make_ready(std::uint64_t size_bytes);
  void retire(store::Reach reach);

  comm::Group group_;
  store::NodeStore& store_;
  commits::Ledger& ledger_;
  OwedOutputs outputs_;
  LostSnapshots lost_snapshots_;
  std::unique_ptr<ProtectStage> protect_;
  std::unique_ptr<Stage> flush_;
  Schedule schedule_;
  Turns turns_;
  Pause& pause_;
  std::unique_ptr<fs::Pace> send_pace_;  ///< the worker's; null: there is no limit
  Clock& clock_;
  const Log& log_;
  Metrics& metrics_;
  FlushRecord flush_record_;
  FlushNews flush_news_;  ///< rank 0's
  Completions completions_;
  StageTimer timer_;
  double within_submit_s_ = 0;
  std::uint64_t skipped_ = 0;             ///< flushes, by pipeline.when_full
  std::atomic<bool> is_sealing_ = false;  ///< a snapshot, or making its manifest
  Upkeep upkeep_;                         ///< the worker's, while there is any
  UnreadFiles unread_files_{store_};
  std::unique_ptr<Worker> worker_;  ///< in the background; the last member: it uses the others
};

}  // namespace kedge::pipeline

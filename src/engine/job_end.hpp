// Whether the job is to end, as its ranks know it together, and what becomes of its last checkpoint.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "base/recent_values.hpp"
#include "comm/group.hpp"
#include "kedge/options.hpp"
#include "kedge/types.hpp"
#include "pipeline/pipeline.hpp"
#include "pipeline/stage_costs.hpp"

namespace kedge::engine {

/// Measured times of a checkpoint.
struct SaveCosts {
  std::optional<double> local_s;  ///< from create to the seal
  pipeline::StageCosts stages;
};

/// Pure: seconds in, decisions out.
class LastSave {
 public:
  // Defaults where nothing was measured.
  static constexpr double kLocalDefault_s = 10;
  static constexpr double kProtectDefault_s = 10;
  static constexpr double kFlushDefault_s = 60;
  /// The next checkpoint, and the next pass of the application's loop, may take so many times what the last ones took.
  static constexpr double kSafety = 1.5;

  /// The margin where less than that is left, of what is left.
  static constexpr double kShareOfShort = 0.5;

  struct Settings {
    Level highest = Level::local;  ///< that this run's commits are taken to
    bool protects = false;         ///< before they are flushed
    double margin_s = 0;           ///< what is to be left of the time afterwards
  };

  /// The level that can still be reached.
  struct Choice {
    Level level = Level::local;
    double takes_s = 0;          ///< as estimated
    bool is_measured = false;    ///< by this run, all of it
    bool fits = false;           ///< into the time that is left
    double highest_takes_s = 0;  ///< up to the level that it would be taken to with more time
  };

  /// Whether the application was asked for it, or makes it of its own accord.
  enum class When : std::uint8_t { now, next };

  explicit LastSave(const Settings& settings) : settings_(settings) {}

  /// From create until the level is reached, behind what is under way.
  [[nodiscard]] double estimate_s(Level level, const SaveCosts& costs) const;
  /// Whether it must begin now, if the job ends in `left_s` and can begin it next after another `pass_s`.
  [[nodiscard]] bool is_due(double left_s, double pass_s, const SaveCosts& costs) const;
  /// Whether this run has measured all that it is planned with.
  [[nodiscard]] bool is_measured(const SaveCosts& costs) const { return is_measured(settings_.highest, costs); }
  /// Whether another checkpoint before the last one may show that it takes less, once it must begin by what is assumed
  /// alone.
  [[nodiscard]] bool is_worth_measuring(double left_s, const SaveCosts& costs) const {
    return !is_measured(costs) && left_s > settings_.margin_s;
  }
  /// Whether one that is local would still be done in time after the application's next pass: while a checkpoint that
  /// measures is on its way, more need not be certain, since that one goes on.
  [[nodiscard]] bool may_wait(double left_s, double pass_s, const SaveCosts& costs) const {
    return left_s > kSafety * (pass_s + estimate_s(Level::local, costs)) + settings_.margin_s;
  }
  /// Whether it would still be done in time after another checkpoint now. If it was not measured, another is welcome.
  [[nodiscard]] bool has_time_for_another_save(double left_s, double pass_s, const SaveCosts& costs) const {
    return !is_measured(costs) || !is_due(left_s - estimate_s(settings_.highest, costs), pass_s, costs);
  }
  /// The highest level that is reached in time; `local` if none is. Without an end, the highest.
  [[nodiscard]] Choice choose(std::optional<double> left_s, const SaveCosts& costs) const;
  /// "taking the last checkpoint now, up to level persistent (estimated 38.00 s from recent ones)": the choice, for
  /// people.
  [[nodiscard]] std::string describe(const Choice& choice, When when) const;

 private:
  [[nodiscard]] bool is_measured(Level level, const SaveCosts& costs) const;

  Settings settings_;
};

/// Slurm's variable that says when the job ends.
inline constexpr const char* kSlurmEndVariable = "SLURM_JOB_END_TIME";

/// A job is to end when a signal came to any rank, or when rank 0 finds the deadline near. All ranks learn of it in the
/// same call. From then on need_checkpoint() is true until a checkpoint was committed, and should_exit() is true. If
/// the deadline seems near only because nothing was measured yet, one checkpoint is made first to measure.
class JobEnd {
 public:
  struct Settings {
    const Options::Exit& exit;
    const std::string& deadline;           ///< the option
    std::optional<std::string> slurm_end;  ///< kSlurmEndVariable, if it is set
    std::function<int()> signal;           ///< the number of a signal that came to this process; 0 if none did
    Clock& clock;
    const Log& log;
  };
  /// Local. All that is referred to must outlive it.
  JobEnd(const comm::Group& group, const pipeline::Pipeline& pipeline, Settings settings);

  /// COLLECTIVE. `is_scheduled`: a checkpoint is due in any case; rank 0's counts.
  [[nodiscard]] bool need_checkpoint(bool is_scheduled);
  /// COLLECTIVE. In a pass of the application's loop with need_checkpoint() this is what that call found: a signal that
  /// comes between the two must not end the loop before the checkpoint that belongs to it.
  [[nodiscard]] bool should_exit();

  /// Local. A checkpoint was committed; it took so long from create to its seal, if that is known.
  void committed(std::optional<double> local_s);
  /// Local. The level to which the next commit is to be taken, whatever its turn; the same on every rank.
  [[nodiscard]] std::optional<Level> level() const;
  /// Local. A signal or the deadline asked the job to end; the same on every rank.
  [[nodiscard]] bool is_asked_to_end() const noexcept { return level_.has_value(); }
  /// Local. The next commit is the last, as far as the job's end is concerned; the same on every rank.
  [[nodiscard]] bool is_last_due() const noexcept { return level_ && !is_saved_; }
  /// Local. Whether the next checkpoint may be a snapshot first: neither the last one, nor one that is to measure what
  /// that takes.
  [[nodiscard]] bool permits_snapshot() const noexcept { return !level_ && !measures_; }
  /// Local. The engine was finalized: signals do again what they did before.
  void restore_signals() {
    settings_.signal = [] { return 0; };
  }

 private:
  [[nodiscard]] std::optional<double> find_deadline() const;
  [[nodiscard]] std::optional<double> slurm_deadline() const;
  [[nodiscard]] std::uint64_t check_end();
  [[nodiscard]] std::uint64_t check_deadline() const;
  [[nodiscard]] bool has_time_to_commit() const;
  void measure();
  void begin(std::uint64_t reason, LastSave::When when);
  [[nodiscard]] Level choose(std::uint64_t reason, LastSave::When when);
  [[nodiscard]] std::optional<double> left_s() const;
  [[nodiscard]] double wall_s() const;
  [[nodiscard]] SaveCosts costs() const;

  const comm::Group& group_;
  const pipeline::Pipeline& pipeline_;
  Settings settings_;
  LastSave last_save_;
  std::optional<double> deadline_s_;  ///< seconds since 1970, on rank 0
  RecentValues<4> local_s_;
  RecentValues<8> passes_s_;       ///< from one look to the next, without checkpoints
  std::optional<double> since_s_;  ///< the last look, or the checkpoint after it
  bool was_asked_ = false;         ///< need_checkpoint(), since the last should_exit()
  bool has_measured_ = false;      ///< a checkpoint was asked for to measure
  bool measures_ = false;          ///< a checkpoint that measures is not committed yet
  std::optional<Level> level_;     ///< that the last checkpoint is to reach; nothing until the job is to end
  bool is_saved_ = false;
};

}  // namespace kedge::engine

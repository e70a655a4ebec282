// The last checkpoint before a job is ended: when it must begin, and to which level it can still be taken.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "kedge/types.hpp"
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

}  // namespace kedge::engine

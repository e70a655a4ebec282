#include "engine/last_save.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "base/units.hpp"

namespace kedge::engine {

double LastSave::estimate_s(Level level, const SaveCosts& costs) const {
  const double protect_s = costs.stages.protect_s.value_or(kProtectDefault_s);
  const double flush_s = costs.stages.flush_s.value_or(kFlushDefault_s);
  const pipeline::Ahead& ahead = costs.stages.ahead;
  // Commits that are not sealed yet are waited for in any case.
  double sum_s = static_cast<double>(1 + ahead.seals) * costs.local_s.value_or(kLocalDefault_s);
  if (level <= Level::local) return sum_s;
  sum_s += static_cast<double>(ahead.protects) * protect_s + static_cast<double>(ahead.flushes) * flush_s;
  if (level == Level::protected_ || settings_.protects) sum_s += protect_s;
  if (level == Level::persistent) sum_s += flush_s;
  return sum_s;
}

bool LastSave::is_measured(Level level, const SaveCosts& costs) const {
  const bool protects = level == Level::protected_ || (level == Level::persistent && settings_.protects);
  return costs.local_s && (!protects || costs.stages.protect_s) && (level != Level::persistent || costs.stages.flush_s);
}

bool LastSave::is_due(double left_s, double pass_s, const SaveCosts& costs) const {
  return left_s <= kSafety * (pass_s + estimate_s(settings_.highest, costs)) + settings_.margin_s;
}

LastSave::Choice LastSave::choose(std::optional<double> left_s, const SaveCosts& costs) const {
  // A margin that is longer than what a signal leaves would rule out all but local.
  const bool is_short = left_s && *left_s <= settings_.margin_s;
  const double margin_s = is_short ? std::max(*left_s, 0.0) * kShareOfShort : settings_.margin_s;
  const auto fits = [&](double takes_s) { return !left_s || takes_s + margin_s <= *left_s; };
  Level level = settings_.highest;
  if (level == Level::persistent && !fits(estimate_s(level, costs))) {
    level = settings_.protects ? Level::protected_ : Level::local;
  }
  if (level == Level::protected_ && !fits(estimate_s(level, costs))) level = Level::local;
  const double takes_s = estimate_s(level, costs);
  return {level, takes_s, is_measured(level, costs), fits(takes_s), estimate_s(settings_.highest, costs)};
}

std::string LastSave::describe(const Choice& choice, When when) const {
  std::string text = compose(
      "{}, up to level {} (estimated {}{}",
      when == When::now ? "taking the last checkpoint now" : "should_exit is true, and the next checkpoint is the last",
      to_string(choice.level), human_seconds(choice.takes_s),
      choice.is_measured ? " from recent ones" : ", partly assumed, since this run has not measured it yet");
  if (choice.level != settings_.highest) {
    text += compose("; {} would take {}", to_string(settings_.highest), human_seconds(choice.highest_takes_s));
  }
  text += ")";
  if (!choice.fits) text += "; this may not finish in time";
  return text;
}

}  // namespace kedge::engine

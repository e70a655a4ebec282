#include "engine/job_end.hpp"

#include <algorithm>
#include <utility>

#include "base/exit_signals.hpp"
#include "base/text.hpp"
#include "base/timestamp.hpp"
#include "comm/calls.hpp"

namespace kedge::engine {
namespace {

// A rank's reason to end, as a number; the largest counts. A signal's number and the rank that it came to are below the
// bit.
constexpr std::uint64_t kScheduled = 1;
constexpr std::uint64_t kMeasure = 2;
constexpr std::uint64_t kDeadline = 3;
constexpr std::uint64_t kSignal = std::uint64_t{1} << 62U;
constexpr unsigned kSignalShift = 32;

std::uint64_t from_signal(int signal, int rank) {
  return kSignal | static_cast<std::uint64_t>(signal) << kSignalShift | static_cast<std::uint64_t>(rank);
}

std::string signal_reason(std::uint64_t reason) {
  const auto signal = static_cast<int>((reason & ~kSignal) >> kSignalShift);
  return compose("rank {} received {}", reason & ((std::uint64_t{1} << kSignalShift) - 1), exit_signal_name(signal));
}

std::string time_left(double left_s) {
  return left_s >= 0 ? compose("the job ends in {}", human_seconds(left_s))
                     : compose("the job's deadline was {} ago", human_seconds(-left_s));
}

}  // namespace

JobEnd::JobEnd(const comm::Group& group, const pipeline::Pipeline& pipeline, Settings settings)
    : group_(group),
      pipeline_(pipeline),
      settings_(std::move(settings)),
      last_save_({pipeline.stages().highest_level(), pipeline.stages().is_scheduled(Level::protected_),
                  settings_.exit.margin_s}) {
  if (!group_.is_root()) return;
  deadline_s_ = find_deadline();
}

/// Finds the deadline, on rank 0.
std::optional<double> JobEnd::find_deadline() const {
  const std::string& given = settings_.deadline;
  const std::optional<double> deadline_s =
      given.empty() ? slurm_deadline() : parse_timestamp(given);  // "none" is not one
  if (deadline_s && *deadline_s <= wall_s()) {
    settings_.log.warning(
        compose("the deadline {} has passed, so the job ends after one checkpoint; note that the option is a point in "
                "time, not a duration",
                format_timestamp(*deadline_s)));
  } else if (deadline_s) {
    settings_.log.info(compose("{} {} ({}); the last checkpoint will be finished {} before it (exit.margin_s)",
                               given.empty() ? kSlurmEndVariable : "deadline", format_timestamp(*deadline_s),
                               time_left(*deadline_s - wall_s()), human_seconds(settings_.exit.margin_s)));
  }
  return deadline_s;
}

/// A variable that nobody configured for Kedge stops no job: a value that is of no use is only logged.
std::optional<double> JobEnd::slurm_deadline() const {
  const std::optional<std::string>& text = settings_.slurm_end;
  if (!text || text->empty()) return std::nullopt;
  const bool is_number = text->find_first_not_of("0123456789") == std::string::npos;
  const auto end_s = is_number ? parse_timestamp(*text) : std::nullopt;
  if (!end_s) {
    settings_.log.warning(
        compose("{} is \"{}\", which is not a time, so the job's end is unknown; set deadline to a time, or to none",
                kSlurmEndVariable, text->substr(0, 64)));
  } else if (*end_s <= wall_s()) {
    settings_.log.warning(
        compose("{} is {}, which has passed, so the job's end is unknown; set deadline to a time, or to none",
                kSlurmEndVariable, format_timestamp(*end_s)));
    return std::nullopt;
  }
  return end_s;
}

double JobEnd::wall_s() const { return static_cast<double>(settings_.clock.wall_ns()) * 1e-9; }

std::optional<double> JobEnd::left_s() const {
  return deadline_s_ ? std::optional(*deadline_s_ - wall_s()) : std::nullopt;
}

SaveCosts JobEnd::costs() const {
  SaveCosts costs{local_s_.largest(), pipeline_.costs()};
  if (costs.stages.local_s) costs.local_s = std::max(costs.local_s.value_or(0), *costs.stages.local_s);
  return costs;
}

/// Local. Why the job is to end, as far as this rank knows; 0 if it knows of nothing.
std::uint64_t JobEnd::check_end() {
  const double now_s = settings_.clock.seconds();
  if (since_s_) passes_s_.add(now_s - *since_s_);
  since_s_ = now_s;
  if (const int signal = settings_.signal(); signal != 0) return from_signal(signal, group_.rank());
  return check_deadline();
}

/// Local.
std::uint64_t JobEnd::check_deadline() const {
  const auto left = left_s();
  const SaveCosts known = costs();
  if (!left || !last_save_.is_due(*left, passes_s_.largest().value_or(0), known)) return 0;
  if (!last_save_.is_worth_measuring(*left, known)) return kDeadline;
  if (!has_measured_) return kMeasure;
  // In the background the checkpoint that measures may still be on its way.
  const pipeline::PendingStages& ahead = known.stages.pending_stages;
  const bool is_in_progress = ahead.protect_count + ahead.flush_count != 0;
  return is_in_progress && last_save_.may_wait(*left, passes_s_.largest().value_or(0), known) ? 0 : kDeadline;
}

/// Local. One that is due shortly before the last one would delay it, and is left out.
bool JobEnd::has_time_to_commit() const {
  const auto left = left_s();
  return !left || last_save_.has_time_for_another_save(*left, passes_s_.largest().value_or(0), costs());
}

bool JobEnd::need_checkpoint(bool is_scheduled) {
  was_asked_ = true;
  const std::uint64_t found = check_end();
  const std::uint64_t scheduled = group_.is_root() && is_scheduled && has_time_to_commit() ? kScheduled : 0;
  const std::uint64_t agreed = comm::begin_call(group_, comm::Call::need_checkpoint, 0, {}, std::max(found, scheduled));
  if (!level_ && agreed >= kDeadline) begin(agreed, LastSave::When::now);
  if (level_) return !is_saved_;
  if (agreed == kMeasure) measure();
  return agreed != 0;
}

bool JobEnd::should_exit() {
  std::uint64_t found = std::exchange(was_asked_, false) ? 0 : check_end();
  if (found == kMeasure) found = kDeadline;  // the checkpoint that follows this call is the last
  const std::uint64_t agreed = comm::begin_call(group_, comm::Call::should_exit, 0, {}, found);
  if (!level_ && agreed >= kDeadline) begin(agreed, LastSave::When::next);
  return level_.has_value();
}

/// On all ranks, once.
void JobEnd::measure() {
  has_measured_ = measures_ = true;
  if (!group_.is_root()) return;
  settings_.log.info(compose("{}: taking a checkpoint to level {} now, to measure how long the last one will take",
                             time_left(left_s().value_or(0)), to_string(pipeline_.stages().highest_level())));
}

/// COLLECTIVE, once.
void JobEnd::begin(std::uint64_t reason, LastSave::When when) {
  Level level = group_.is_root() ? choose(reason, when) : Level::none;
  group_.broadcast(level);
  level_ = level;
}

/// Rank 0's clock, measurements and log.
Level JobEnd::choose(std::uint64_t reason, LastSave::When when) {
  const bool by_signal = reason >= kSignal;
  const double grace_s = settings_.exit.grace_s;
  if (by_signal && grace_s > 0) deadline_s_ = std::min(deadline_s_.value_or(INFINITY), wall_s() + grace_s);
  const auto left = left_s();
  const LastSave::Choice choice = last_save_.choose(left, costs());
  std::string why = by_signal ? signal_reason(reason) : "";
  if (left) why += (why.empty() ? "" : ", ") + time_left(*left);
  settings_.log.info(compose("{}: {}", why, last_save_.describe(choice, when)));
  return choice.level;
}

void JobEnd::committed(std::optional<double> local_s) {
  if (local_s) local_s_.add(*local_s);
  since_s_ = settings_.clock.seconds();
  measures_ = false;
  if (level_) is_saved_ = true;
}

std::optional<Level> JobEnd::level() const {
  if (is_last_due()) return level_;
  if (level_) return std::nullopt;
  return measures_ ? std::optional(pipeline_.stages().highest_level()) : std::nullopt;
}

double LastSave::estimate_s(Level level, const SaveCosts& costs) const {
  const double protect_s = costs.stages.protect_s.value_or(kProtectDefault_s);
  const double flush_s = costs.stages.flush_s.value_or(kFlushDefault_s);
  const pipeline::PendingStages& ahead = costs.stages.pending_stages;
  // Commits that are not sealed yet are waited for in any case.
  double sum_s = static_cast<double>(1 + ahead.seal_count) * costs.local_s.value_or(kLocalDefault_s);
  if (level <= Level::local) return sum_s;
  sum_s += static_cast<double>(ahead.protect_count) * protect_s + static_cast<double>(ahead.flush_count) * flush_s;
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

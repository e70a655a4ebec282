#include "pipeline/stage_list.hpp"

#include <algorithm>

#include "base/invariant.hpp"

namespace kedge::pipeline {

std::size_t StageList::index_of(Level level) const {
  const auto found =
      std::ranges::find_if(stages_, [&](const StageWithPolicy& one) { return one.stage->level() == level; });
  invariant(found != stages_.end(), "every level above local has a stage");
  return static_cast<std::size_t>(found - stages_.begin());
}

Level StageList::highest_level() const {
  Level highest = Level::local;
  for (const StageWithPolicy& one : stages_) {
    if (one.is_scheduled()) highest = std::max(highest, one.stage->level());
  }
  return highest;
}

std::uint64_t StageList::sent_bytes(std::uint64_t container_bytes) const {
  double share = 0;
  for (const StageWithPolicy& one : stages_) share += one.stage->sent_bytes_per_byte();
  return static_cast<std::uint64_t>(static_cast<double>(container_bytes) * share);
}

CommitProgress StageList::progress_of(const CommitHead& commit) const {
  CommitProgress progress{commit};
  for (const StageWithPolicy& one : stages_) progress.stages.push_back({one.stage->name(), one.stage->level()});
  return progress;
}

bool StageList::is_due(const StageWithPolicy& scheduled, std::optional<Level> highest, bool failed) {
  const bool by_turn = scheduled.policy->is_due(failed) && scheduled.stage->is_possible();
  const Level level = scheduled.stage->level();
  if (!highest || level == Level::none || level < *highest) return by_turn;
  return level == *highest;
}

void StageList::mark_due(CommitProgress& progress, std::optional<Level> highest, std::uint64_t failed) {
  for (std::size_t number = 0; number < stages_.size(); ++number) {
    const StageWithPolicy& one = stages_[number];
    const bool has_failed = (failed >> number & 1U) != 0;
    bool due = false;
    if (progress.commit.is_output) {
      const Stage::ForOutputs rule = one.stage->for_outputs();
      due = rule == Stage::ForOutputs::always || (rule == Stage::ForOutputs::as_checkpoints && one.is_scheduled());
    } else {
      due = is_due(one, highest, has_failed);
    }
    if (due) progress.stages[number].state = StageState::due;
    const bool is_made_up_for = due && !progress.commit.is_output;
    if (has_failed && !is_made_up_for) one.policy->mark_lost();  // the next checkpoint makes up for it
  }
}

std::uint64_t StageList::take_failed_stages() {
  std::uint64_t failed = 0;
  for (std::size_t number = 0; number < stages_.size(); ++number) {
    if (stages_[number].policy->take_failure()) failed |= std::uint64_t{1} << number;
  }
  return failed;
}

bool StageList::needs_agreement() const {
  return std::ranges::any_of(stages_, [](const StageWithPolicy& one) { return one.policy->needs_agreement(); });
}

void StageList::count_checkpoint() {
  for (const StageWithPolicy& one : stages_) one.policy->count_checkpoint();
}

void StageList::restart_due(const CommitProgress& progress) {
  if (progress.commit.is_output) return;
  for (std::size_t number = 0; number < stages_.size(); ++number) {
    if (progress.stages[number].state == StageState::due) stages_[number].policy->restart_count();
  }
}

}  // namespace kedge::pipeline

// The stages of a pipeline, and which of them are due for a commit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "pipeline/progress.hpp"
#include "pipeline/stage.hpp"
#include "pipeline/turns.hpp"

namespace kedge::pipeline {

struct StageWithTurns {
  std::unique_ptr<Stage> stage;
  /// What a failed attempt of a checkpoint changes, another thread may note.
  std::unique_ptr<Turns> turns;

  /// Whether checkpoints get there by themselves.
  [[nodiscard]] bool is_scheduled() const { return turns->has_any() && stage->is_possible(); }
};

/// In the order in which commits go through them; the same on every rank.
class StageList {
 public:
  explicit StageList(std::vector<StageWithTurns> stages) : stages_(std::move(stages)) {}

  [[nodiscard]] std::size_t size() const noexcept { return stages_.size(); }
  [[nodiscard]] StageWithTurns& operator[](std::size_t number) { return stages_[number]; }
  [[nodiscard]] const std::vector<StageWithTurns>& all() const noexcept { return stages_; }
  /// The one that reaches this level.
  [[nodiscard]] std::size_t index_of(Level level) const;
  [[nodiscard]] const Stage& of(Level level) const { return *stages_[index_of(level)].stage; }
  /// Whether checkpoints reach this level by themselves.
  [[nodiscard]] bool is_scheduled(Level level) const { return stages_[index_of(level)].is_scheduled(); }
  /// The highest level that checkpoints reach by themselves.
  [[nodiscard]] Level highest_level() const;

  /// What a rank sends to others for a container of so many bytes.
  [[nodiscard]] std::uint64_t sent_bytes(std::uint64_t container_bytes) const;

  /// Of a commit for which nothing is due.
  [[nodiscard]] CommitProgress progress_of(const CommitHead& commit) const;
  /// Marks what is due for a commit that was just made: what its turns say, but no level above `highest`, and that one
  /// in any case; of an output, what Stage::for_outputs says. `failed`: has a bit for each stage that must make up for
  /// a checkpoint.
  void mark_due(CommitProgress& progress, std::optional<Level> highest, std::uint64_t failed);
  /// The bits of the stages that must make up for a checkpoint, as far as this rank knows; each is told once.
  [[nodiscard]] std::uint64_t take_failed();
  /// Whether ranks may know different things of that.
  [[nodiscard]] bool compares() const;
  /// Another checkpoint was made.
  void count();
  /// A worker has those stages in hand that are due for this checkpoint, or they are about to be run.
  void restart_due(const CommitProgress& progress);

 private:
  [[nodiscard]] static bool is_due(const StageWithTurns& scheduled, std::optional<Level> highest, bool failed);

  std::vector<StageWithTurns> stages_;
};

}  // namespace kedge::pipeline

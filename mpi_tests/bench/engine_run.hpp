// One run's engine, which is started again and again, and the data that it saves: through Kedge's public API alone, but
// for where what it reads is counted.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "arguments.hpp"
#include "data.hpp"
#include "fs/file_system.hpp"
#include "kedge/engine.hpp"
#include "workplace.hpp"

namespace kedge_bench {

/// Local. Of an engine of this run, for what all that is measured has in common.
[[nodiscard]] kedge::Options options_of(const std::string& run, const Arguments& arguments, const Workplace& workplace);

/// COLLECTIVE calls throw on all ranks.
class EngineRun {
 public:
  /// A run of this name. It saves the beginning of the buffers, as so many regions.
  struct Content {
    std::string run;
    std::uint64_t regions = 1;
    std::uint64_t region_bytes = 0;  ///< a multiple of 8
    kedge::OnExit on_exit = kedge::OnExit::keep;
    bool background = false;  ///< every commit is protected and flushed in the background
    /// What a node sends and writes then, each; 0: without limit.
    std::uint64_t bytes_per_s = 0;
  };

  EngineRun(const Arguments& arguments, kedge::Scheme scheme, Content content, const Workplace& workplace,
            Buffers& buffers, int rank, int ranks);

  [[nodiscard]] bool protects() const noexcept { return tolerance() > 0; }
  /// Losses that a set survives; 0: the scheme protects nothing.
  [[nodiscard]] std::uint32_t tolerance() const noexcept { return tolerance_; }
  /// Of a redundancy set, at most.
  [[nodiscard]] std::uint32_t members() const noexcept;
  [[nodiscard]] kedge::Engine& engine() { return *engine_; }
  /// Of what is in the buffers now.
  [[nodiscard]] std::string tag() const { return "content-" + std::to_string(number_); }

  /// COLLECTIVE. In place of the engine that there is, if any.
  void start() { start(background_ ? kedge::PipelineMode::background : kedge::PipelineMode::inline_); }
  void start(kedge::PipelineMode mode) { start(mode, nullptr); }
  /// COLLECTIVE. Inline, over this file system.
  void start_over(std::shared_ptr<kedge::fs::FileSystem> files) {
    start(kedge::PipelineMode::inline_, std::move(files));
  }
  /// COLLECTIVE. Nothing if there is none.
  void stop();
  /// Local. Every byte differs from that of the checkpoint before.
  void new_data();
  /// What this rank spent in save.
  struct Spent {
    double s = 0;
    double cpu_s = 0;  ///< of all its threads
  };
  /// COLLECTIVE. Create, save of all regions, and commit under tag().
  Spent checkpoint() { return checkpoint(tag()); }
  Spent checkpoint(const std::string& tag);
  /// COLLECTIVE. Ends what open began: tag() it must be, from there. Seconds that the loads took.
  [[nodiscard]] double load_and_compare(kedge::RecoverySource expected);
  /// COLLECTIVE. Restores all regions as one State: tag() it must be, from the store as it lies. Seconds that it took.
  [[nodiscard]] double restore_and_compare();

 private:
  void start(kedge::PipelineMode mode, std::shared_ptr<kedge::fs::FileSystem> files);
  void compare();

  struct Piece {
    std::string name;
    std::span<std::uint64_t> data;
    std::span<std::uint64_t> back;
  };

  const Arguments& arguments_;
  kedge::Scheme scheme_;
  std::string run_;
  kedge::OnExit on_exit_;
  bool background_;
  std::uint64_t bytes_per_s_;
  const Workplace& workplace_;
  std::span<std::uint64_t> data_;
  std::span<std::uint64_t> back_;
  std::vector<Piece> pieces_;
  int rank_;
  int ranks_;
  std::uint32_t tolerance_;
  std::uint64_t number_ = 0;  // of what is in the buffers
  std::optional<kedge::Engine> engine_;
};

}  // namespace kedge_bench

// One run's engine, which is started again and again, and the data that it saves: through Kedge's public API alone.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "arguments.hpp"
#include "data.hpp"
#include "kedge/engine.hpp"
#include "workplace.hpp"

namespace kedge_bench {

/// COLLECTIVE calls throw on all ranks.
class EngineRun {
 public:
  EngineRun(const Arguments& arguments, const Workplace& workplace, Buffers& buffers, int rank, int ranks);

  [[nodiscard]] bool protects() const noexcept { return protects_; }
  [[nodiscard]] kedge::Engine& engine() { return *engine_; }
  /// Of what is in the buffers now.
  [[nodiscard]] std::string tag() const { return "content-" + std::to_string(content_); }

  /// COLLECTIVE. In place of the engine that there is, if any.
  void start();
  /// COLLECTIVE.
  void stop();
  /// Local. Every byte differs from that of the checkpoint before.
  void new_data();
  /// COLLECTIVE. Create, save and commit under tag().
  void checkpoint();
  /// COLLECTIVE. Ends what open began: tag() it must be, from there. Seconds that load took.
  [[nodiscard]] double load_and_compare(kedge::RecoverySource expected);

 private:
  const Arguments& arguments_;
  const Workplace& workplace_;
  Buffers& buffers_;
  int rank_;
  int ranks_;
  bool protects_;
  std::uint64_t content_ = 0;  // number of what is in the buffers
  std::optional<kedge::Engine> engine_;
};

}  // namespace kedge_bench

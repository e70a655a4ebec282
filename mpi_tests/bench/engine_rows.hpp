// What Kedge does on the node-local stores.
#pragma once

#include <cstdint>

#include "baselines.hpp"
#include "engine_run.hpp"
#include "recorder.hpp"
#include "table.hpp"
#include "workplace.hpp"

namespace kedge_bench {

/// COLLECTIVE calls throw on all ranks.
class EngineRows {
 public:
  EngineRows(const Workplace& workplace, EngineRun& run, Baselines& baselines, Buffers& buffers)
      : workplace_(workplace), run_(run), baselines_(baselines), buffers_(buffers) {}

  /// Local. Adds the rows that round() records; all ranks together save so many bytes.
  void add_to(Table& table, std::uint64_t bytes) const;
  /// COLLECTIVE. Checkpoints, restarts, loses as many nodes as a set survives: each row once, and everything that comes
  /// back compared. The engine stays.
  void round(Recorder& recorder);

 private:
  void write(Recorder& recorder);
  void protect(Recorder& recorder);
  [[nodiscard]] double reopen(Recorder& recorder);
  [[nodiscard]] double lose_and_reopen(Recorder& recorder);

  const Workplace& workplace_;
  EngineRun& run_;
  Baselines& baselines_;
  Buffers& buffers_;
  std::uint64_t rounds_ = 0;
};

}  // namespace kedge_bench

// What Kedge does behind the application, and what the application pays for it.
#pragma once

#include <cstdint>

#include "engine_run.hpp"
#include "recorder.hpp"
#include "table.hpp"
#include "workplace.hpp"

namespace kedge_bench {

/// COLLECTIVE calls throw on all ranks.
class BackgroundRows {
 public:
  /// `run` protects and flushes every commit, in the background.
  BackgroundRows(const Workplace& workplace, EngineRun& run) : workplace_(workplace), run_(run) {}

  /// Local. Adds the rows that round() records.
  static void add_to(Table& table, std::uint64_t bytes);
  /// COLLECTIVE. A checkpoint while the one before is protected and flushed, and one of which the end is waited for;
  /// what was written last is compared. All of the run's files are removed again, outside of the times.
  void round(Recorder& recorder);

 private:
  const Workplace& workplace_;
  EngineRun& run_;
};

}  // namespace kedge_bench

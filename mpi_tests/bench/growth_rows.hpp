// Whether a long run holds more and more memory.
#pragma once

#include "data.hpp"
#include "engine_run.hpp"
#include "recorder.hpp"
#include "table.hpp"
#include "workplace.hpp"

namespace kedge_bench {

/// COLLECTIVE calls throw on all ranks.
class GrowthRows {
 public:
  /// `run` protects and flushes every commit, in the background.
  GrowthRows(const Workplace& workplace, const Buffers& buffers, EngineRun& run)
      : workplace_(workplace), buffers_(buffers), run_(run) {}

  /// Local. Adds the rows that measure() records.
  static void add_to(Table& table);
  /// COLLECTIVE. A few checkpoints until all is there that a run needs, then 200 more. All of the run's files are
  /// removed again. Before any memory is taken that is neither the data nor Kedge's.
  void measure();
  /// Local. What was measured.
  void record(Recorder& recorder) const;

 private:
  void checkpoints(int count);
  [[nodiscard]] double held_mebibytes() const;

  const Workplace& workplace_;
  const Buffers& buffers_;
  EngineRun& run_;
  double held_mib_ = 0;
  double held_later_mib_ = 0;
};

}  // namespace kedge_bench

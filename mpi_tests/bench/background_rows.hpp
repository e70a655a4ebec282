// What Kedge does in the background, and what the application pays for it.
#pragma once

#include <cstdint>
#include <string>

#include "engine_run.hpp"
#include "neighbours.hpp"
#include "recorder.hpp"
#include "table.hpp"
#include "workplace.hpp"

namespace kedge_bench {

/// COLLECTIVE calls throw on all ranks.
class BackgroundRows {
 public:
  /// `run` and `capped` protect and flush every commit, in the background; `capped` at a bounded rate.
  BackgroundRows(const Workplace& workplace, EngineRun& run, EngineRun& capped)
      : workplace_(workplace), run_(run), capped_(capped) {}

  /// Local. Adds the rows that round() records.
  static void add_to(Table& table, std::uint64_t bytes);
  /// COLLECTIVE. A checkpoint while the one before is protected and flushed, one of which the end is waited for, and
  /// loops of an application while that goes on; what was written last before them is compared. All of the run's files
  /// are removed again, outside of the times. `with_loops`: these need memory that is not Kedge's.
  void round(Recorder& recorder, bool with_loops);

 private:
  void neighbours(Recorder& recorder);
  void capped(Recorder& recorder);
  void beside(EngineRun& run, Recorder& recorder, const std::string& key, double (Neighbours::*loop)());

  const Workplace& workplace_;
  EngineRun& run_;
  EngineRun& capped_;
  Neighbours neighbours_;
  bool calibrated_ = false;
};

}  // namespace kedge_bench

// What Kedge does on the prefix.
#pragma once

#include <cstdint>
#include <string>

#include "baselines.hpp"
#include "engine_run.hpp"
#include "recorder.hpp"
#include "table.hpp"
#include "workplace.hpp"

namespace kedge_bench {

/// COLLECTIVE calls throw on all ranks.
class PrefixRows {
 public:
  /// `baselines` is on the prefix's filesystem, `store_baselines` on that of the stores.
  PrefixRows(const Workplace& workplace, EngineRun& run, Baselines& baselines, Baselines& store_baselines)
      : workplace_(workplace), run_(run), baselines_(baselines), store_baselines_(store_baselines) {}

  /// Local. Adds the rows that round() records.
  static void add_to(Table& table, std::uint64_t bytes);
  /// COLLECTIVE. Plain files, flushes, and a start with nothing but the prefix: each row once, and everything that
  /// comes back compared. Begins with the engine of the rows before; what it flushed is removed again, outside of the
  /// times.
  void round(Recorder& recorder);

 private:
  void plain_files(Recorder& recorder);
  void flush(Recorder& recorder);
  void fetch(Recorder& recorder, const std::string& row);

  const Workplace& workplace_;
  EngineRun& run_;
  Baselines& baselines_;
  Baselines& store_baselines_;
  std::uint64_t rounds_ = 0;
};

}  // namespace kedge_bench

// Many small regions in one checkpoint.
#pragma once

#include <cstdint>

#include "baselines.hpp"
#include "engine_run.hpp"
#include "recorder.hpp"
#include "table.hpp"
#include "workplace.hpp"

namespace kedge_bench {

/// COLLECTIVE calls throw on all ranks.
class SmallRows {
 public:
  /// Engines of runs of their own, one at a time: 5000 regions over all ranks, or as many as the data has room for.
  SmallRows(const Arguments& arguments, kedge::Scheme scheme, const Workplace& workplace, Buffers& buffers,
            Baselines& baselines, int rank, int ranks);

  /// Local. Adds the rows that round() records.
  void add_to(Table& table) const;
  /// COLLECTIVE. Each row once, and everything that comes back compared.
  void round(Recorder& recorder);

 private:
  void save(Recorder& recorder);
  static void reopen_and_compare(EngineRun& run);

  std::uint64_t count_;  // of each rank
  std::uint64_t ranks_;
  Baselines& baselines_;
  EngineRun small_;
  EngineRun tiny_;
  std::uint64_t rounds_ = 0;
};

}  // namespace kedge_bench

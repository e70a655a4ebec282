// What Kedge does on the node-local stores.
#pragma once

#include <cstdint>

#include "arguments.hpp"
#include "engine_run.hpp"
#include "table.hpp"
#include "workplace.hpp"

namespace kedge_bench {

/// COLLECTIVE calls throw on all ranks.
class EngineRows {
 public:
  EngineRows(const Arguments& arguments, const Workplace& workplace, EngineRun& run, int ranks)
      : arguments_(arguments), workplace_(workplace), run_(run), ranks_(ranks) {}

  /// Local. Adds the rows that round() records.
  void add_to(Table& table) const;
  /// COLLECTIVE. Checkpoints, restarts, loses a node: each row once, and everything that comes back compared. The
  /// engine stays.
  void round(Table& table);

 private:
  void write(Table& table);
  void reopen(Table& table);
  void lose_and_reopen(Table& table);

  const Arguments& arguments_;
  const Workplace& workplace_;
  EngineRun& run_;
  int ranks_;
  std::uint64_t rounds_ = 0;
};

}  // namespace kedge_bench

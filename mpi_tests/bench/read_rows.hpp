// How often the bytes of a checkpoint are read to restart from it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "counting_file_system.hpp"
#include "engine_run.hpp"
#include "recorder.hpp"
#include "table.hpp"
#include "workplace.hpp"

namespace kedge_bench {

/// COLLECTIVE calls throw on all ranks.
class ReadRows {
 public:
  /// Engines of a run of its own, without protection or a worker: what is read is the one container, by whoever
  /// restarts.
  ReadRows(const Arguments& arguments, const Workplace& workplace, Buffers& buffers, int rank, int ranks);

  /// Local. Adds the rows that round() records.
  static void add_to(Table& table);
  /// COLLECTIVE. Each row once. Nothing is timed.
  void round(Recorder& recorder);

 private:
  [[nodiscard]] double reads_of(const std::function<void()>& restart);

  std::uint64_t bytes_;  // of each rank
  int ranks_;
  std::shared_ptr<CountingFileSystem> files_;
  EngineRun run_;
};

}  // namespace kedge_bench

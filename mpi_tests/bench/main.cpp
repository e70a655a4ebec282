// kedge-bench: what a checkpoint costs, against plain writes and reads of the same bytes in the same run.
#include <mpi.h>

#include <cstdint>
#include <exception>
#include <fstream>
#include <iostream>
#include <stdexcept>

#include "arguments.hpp"
#include "baselines.hpp"
#include "data.hpp"
#include "engine_rows.hpp"
#include "engine_run.hpp"
#include "memory_watch.hpp"
#include "prefix_rows.hpp"
#include "report.hpp"
#include "timing.hpp"
#include "workplace.hpp"

namespace {

using namespace kedge_bench;

void add_baselines(Table& table) {
  table.add({"copy", "plain memcpy", "write", {}, {}});
  table.add({"write", "W: plain write of fresh files", "", {}, {}});
  table.add({"read", "plain read of them", "write", {}, {}});
}

void baseline_round(Baselines& baselines, Table& table) {
  table.record("copy", baselines.copy());
  table.record("write", baselines.write_fresh());
  table.record("read", baselines.read());
}

/// COLLECTIVE. One round that does not count, in which memory is watched and dd is compared; then the others.
Results measure(const Arguments& arguments, int rank, int ranks) {
  const Workplace workplace(arguments, rank);
  Buffers buffers(arguments.size_bytes);
  fill(buffers.data, rank, 0);
  Baselines baselines(workplace.plain(), rank, ranks, buffers);
  Baselines disk_baselines(workplace.plain_on_disk(), rank, ranks, buffers);
  EngineRun run(arguments, workplace, buffers, rank, ranks);
  EngineRows engine_rows(arguments, workplace, run, ranks);
  PrefixRows prefix_rows(workplace, run, disk_baselines);
  const auto engine_round = [&](Table& table) {
    engine_rows.round(table);
    if (arguments.persistent) prefix_rows.round(table);
  };
  Results results;
  results.arguments = arguments;
  results.ranks = ranks;
  add_baselines(results.table);
  engine_rows.add_to(results.table);
  if (arguments.persistent) PrefixRows::add_to(results.table);

  baseline_round(baselines, results.table);
  results.dd_s = baselines.copy_by_dd();
  results.write_and_read_s = baselines.write_fresh() + baselines.read();
  MemoryWatch watch;
  engine_round(results.table);
  results.peak_private_bytes = watch.peak_bytes();
  MPI_Allreduce(MPI_IN_PLACE, &results.peak_private_bytes, 1, MPI_UINT64_T, MPI_MAX, MPI_COMM_WORLD);

  results.table.clear();
  for (std::uint64_t round = 0; round < arguments.rounds; ++round) {
    baseline_round(baselines, results.table);
    engine_round(results.table);
  }
  results.surroundings = look_around();
  results.disk = filesystem_of(workplace.prefix());
  return results;
}

void tell(const Results& results) {
  std::cout << as_text(results) << std::flush;
  if (results.arguments.json.empty()) return;
  std::ofstream file(results.arguments.json);
  file << as_json(results) << std::flush;
  if (!file) throw std::runtime_error("cannot write " + results.arguments.json);
}

}  // namespace

int main(int argc, char** argv) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  int rank = 0;
  int ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  keep_signals();
  int exit_code = 0;
  try {
    // All ranks have the same command line, so all throw or none.
    if (const auto arguments = parse(argc, argv)) {
      const Results results = measure(*arguments, rank, ranks);
      together([&] {
        if (rank == 0) tell(results);
      });
    } else if (rank == 0) {
      std::cout << help() << std::flush;
    }
  } catch (const std::exception& error) {
    if (rank == 0) std::cerr << "kedge-bench: " << error.what() << std::endl;
    exit_code = 1;
  }
  MPI_Finalize();
  return exit_code;
}

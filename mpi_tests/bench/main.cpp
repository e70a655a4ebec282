// kedge-bench: what a checkpoint costs, against plain writes and reads of the same bytes in the same run.
#include <mpi.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iostream>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "arguments.hpp"
#include "background_rows.hpp"
#include "bare_exchange.hpp"
#include "baselines.hpp"
#include "data.hpp"
#include "engine_rows.hpp"
#include "engine_run.hpp"
#include "growth_rows.hpp"
#include "memory_watch.hpp"
#include "other_ranks_rows.hpp"
#include "plan_rows.hpp"
#include "prefix_rows.hpp"
#include "read_rows.hpp"
#include "recorder.hpp"
#include "report.hpp"
#include "small_rows.hpp"
#include "tags_rows.hpp"
#include "timing.hpp"
#include "workplace.hpp"
#ifdef KEDGE_HAS_CUDA
#include "gpu/device_bench.hpp"
#endif

namespace {

using namespace kedge_bench;

constexpr double kMebibyte = 1024.0 * 1024.0;
constexpr int kNotMeasured = 3;
constexpr std::uint64_t kLongRun_bytes = std::uint64_t{1} << 20U;  // of each rank: its length counts

/// This process.
struct Self {
  int rank = 0;
  int ranks = 0;
  std::uint64_t begin_bytes = 0;  ///< private memory with its data, before any engine
};

void add_baselines(Table& table, std::uint64_t bytes) {
  table.add({"copy", "plain memcpy", "write", bytes});
  table.add({"copy_cpu", "  processor time of it, on all ranks", "", bytes});
  table.add({"write", "W: plain write of fresh files", "", bytes});
  table.add({"read", "plain read of them", "write", bytes});
}

/// Each twice, the faster one counts: a single disturbance must not make Kedge look well. A file is read once, right
/// after it was written; a second read would be faster.
void baseline_round(Baselines& baselines, Recorder& recorder) {
  std::vector<std::array<double, 4>> times(2);
  for (auto& [copy, write, read, copy_cpu] : times) {
    std::tie(copy, copy_cpu) = baselines.copy();
    write = baselines.write_fresh();
    read = baselines.read();
  }
  recorder.record("copy", std::min(times[0][0], times[1][0]));
  recorder.record("copy_cpu", std::min(times[0][3], times[1][3]));
  recorder.record("write", std::min(times[0][1], times[1][1]));
  recorder.record("read", std::min(times[0][2], times[1][2]));
}

/// The directories and rows of one scheme; those that are the same for all schemes only if they are asked for.
class Job {
 public:
  Job(const Arguments& arguments, kedge::Scheme scheme, Self self, Buffers& buffers, bool with_small)
      : arguments_(arguments),
        with_small_(with_small),
        begin_bytes_(self.begin_bytes),
        workplace_(arguments, self.rank, self.ranks),
        baselines_(workplace_.plain(), self.rank, buffers),
        disk_baselines_(workplace_.plain_on_disk(), self.rank, buffers),
        run_(arguments, scheme, {"bench", 1, arguments.size_bytes}, workplace_, buffers, self.rank, self.ranks),
        engine_rows_(workplace_, run_, baselines_, buffers),
        small_rows_(arguments, scheme, workplace_, buffers, baselines_, self.rank, self.ranks),
        read_rows_(arguments, workplace_, buffers, self.rank, self.ranks),
        second_(arguments, scheme, {"second", 1, arguments.size_bytes, kedge::OnExit::remove}, workplace_, buffers,
                self.rank, self.ranks),
        prefix_rows_(workplace_, run_, disk_baselines_, baselines_),
        behind_(arguments, scheme, {"behind", 1, arguments.size_bytes, kedge::OnExit::remove, true}, workplace_,
                buffers, self.rank, self.ranks),
        capped_(arguments, scheme,
                {"capped", 1, arguments.size_bytes, kedge::OnExit::remove, true, std::uint64_t{64} << 20U}, workplace_,
                buffers, self.rank, self.ranks),
        background_rows_(workplace_, behind_, capped_),
        long_(arguments, scheme,
              {"long", 1, std::min(arguments.size_bytes, kLongRun_bytes), kedge::OnExit::remove, true}, workplace_,
              buffers, self.rank, self.ranks),
        growth_rows_(workplace_, buffers, long_) {
    if (with_small && OtherRanksRows::are_possible(self.ranks))
      other_ranks_rows_.emplace(arguments, workplace_, buffers, self.rank, self.ranks);
    if (with_small) plan_rows_.emplace(arguments);
    measured_.scheme = scheme;
    measured_.parity = run_.tolerance();
    measured_.members = run_.members();
    fill(buffers.data, self.rank, 0);
    const std::uint64_t bytes = arguments.size_bytes * static_cast<std::uint64_t>(self.ranks);
    add_baselines(measured_.table, bytes);
    engine_rows_.add_to(measured_.table, bytes);
    if (with_small_) {
      measured_.table.add({"second", "blocked copy of a run's second checkpoint, from empty stores", "write", bytes});
      small_rows_.add_to(measured_.table);
      ReadRows::add_to(measured_.table);
      plan_rows_->add_to(measured_.table);
    }
    if (other_ranks_rows_) OtherRanksRows::add_to(measured_.table, arguments, self.ranks);
    if (arguments.persistent) {
      PrefixRows::add_to(measured_.table, bytes);
      BackgroundRows::add_to(measured_.table, bytes);
    }
    if (with_small_ && arguments.persistent) GrowthRows::add_to(measured_.table);
    if (with_small_ && arguments.tags != 0) TagsRows::add_to(measured_.table);
    measured_.table.add({"memory", "private memory beyond the data, at most on a rank", "", 0, Unit::mebibytes});
  }

  /// COLLECTIVE. One round that does not count, in which memory is watched and dd is compared; then the others.
  [[nodiscard]] Measured measure(Results& results) {
    Recorder recorder(measured_.table, arguments_.slow);
    baseline_round(baselines_, recorder);
    results.dd_s = baselines_.copy_by_dd();
    results.write_and_read_s = baselines_.write_fresh() + baselines_.read();
    results.disk = filesystem_of(workplace_.prefix());
    results.nodes = workplace_.nodes();
    results.network = over_network();
    const bool grows = with_small_ && arguments_.persistent;
    if (grows) growth_rows_.measure();  // before there is free memory in which growth would not be seen
    MemoryWatch watch(begin_bytes_);
    engine_round(recorder, false);
    const double peak_bytes = most(static_cast<double>(watch.peak_bytes()));
    measured_.table.clear();
    rounds(recorder, results);
    if (grows) growth_rows_.record(recorder);
    if (with_small_ && arguments_.tags != 0) tags_rounds(recorder);
    recorder.record("memory", peak_bytes / kMebibyte);
    baselines_.remove();
    measured_.held = shared_memory();
    return std::move(measured_);
  }

 private:
  /// With --check, rounds in which a plain write or read was disturbed are measured again, at most as many as there
  /// are.
  void rounds(Recorder& recorder, const Results& results) {
    const auto round = [&] {
      baseline_round(baselines_, recorder);
      engine_round(recorder, true);
    };
    for (std::uint64_t i = 0; i < arguments_.rounds; ++i) round();
    while (arguments_.check && measured_.set_aside < arguments_.rounds) {
      const auto disturbed = disturbed_round(measured_.table, kind_of(results, measured_));
      if (!disturbed) return;
      measured_.table.forget(*disturbed);
      ++measured_.set_aside;
      round();
    }
  }

  void tags_rounds(Recorder& recorder) {
    TagsRows rows(workplace_, arguments_.tags);
    rows.fill();
    for (std::uint64_t i = 0; i < arguments_.rounds; ++i) rows.round(recorder);
    rows.lower(recorder, arguments_.rounds);
  }

  void engine_round(Recorder& recorder, bool counts) {
    engine_rows_.round(recorder);
    if (arguments_.persistent) prefix_rows_.round(recorder);
    run_.stop();
    if (arguments_.persistent) background_rows_.round(recorder, counts);
    if (!with_small_) return;
    second_round(recorder);
    small_rows_.round(recorder);
    read_rows_.round(recorder);
    if (other_ranks_rows_) other_ranks_rows_->round(recorder);
    if (counts) plan_rows_->round(recorder);  // not while memory is watched: it plans for thousands of ranks
  }

  /// Into the file that the first checkpoint made ready. All of the run's files are removed at the end.
  void second_round(Recorder& recorder) {
    second_.start();
    second_.new_data();
    second_.checkpoint();
    second_.new_data();
    recorder.time("second", [&] { second_.checkpoint(); });
    (void)second_.engine().open();
    (void)second_.load_and_compare(kedge::RecoverySource::in_place);
    second_.stop();
  }

  const Arguments& arguments_;
  bool with_small_;
  std::uint64_t begin_bytes_;
  Workplace workplace_;
  Baselines baselines_;
  Baselines disk_baselines_;
  EngineRun run_;
  EngineRows engine_rows_;
  SmallRows small_rows_;
  ReadRows read_rows_;
  EngineRun second_;
  PrefixRows prefix_rows_;
  EngineRun behind_;
  EngineRun capped_;
  BackgroundRows background_rows_;
  EngineRun long_;
  GrowthRows growth_rows_;
  std::optional<OtherRanksRows> other_ranks_rows_;
  std::optional<PlanRows> plan_rows_;
  Measured measured_;
};

/// COLLECTIVE. One scheme after the other.
Results measure(const Arguments& arguments, Self self) {
  Results results;
  results.arguments = arguments;
  results.ranks = self.ranks;
  Buffers buffers(arguments.size_bytes);
  self.begin_bytes = private_bytes();
  for (const kedge::Scheme scheme : arguments.schemes) {
    Job job(arguments, scheme, self, buffers, results.measured.empty());
    results.measured.push_back(job.measure(results));
  }
  results.surroundings = look_around();
  return results;
}

void tell(const Results& results) {
  std::cout << as_text(results) << std::flush;
  if (results.arguments.json.empty()) return;
  std::ofstream file(results.arguments.json);
  file << as_json(results) << std::flush;
  if (!file) throw std::runtime_error("cannot write " + results.arguments.json);
}

/// kedge-bench --device: one process, without MPI.
int of_device(int argc, char** argv) {
  for (const char* variable : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}) {
    const char* ranks = std::getenv(variable);
    if (ranks == nullptr || std::string_view(ranks) == "1") continue;
    std::cerr << "kedge-bench: --device measures one process: run it without mpirun" << std::endl;
    return kNotMeasured;
  }
#ifdef KEDGE_HAS_CUDA
  return kedge::gpu::device_bench(argc, argv, "kedge-bench --device");
#else
  (void)argc;
  (void)argv;
  std::cout << "skipped: this kedge-bench was built without CUDA (KEDGE_CUDA)" << std::endl;
  return 77;
#endif
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "--device") return of_device(argc - 1, argv + 1);
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  Self self;
  MPI_Comm_rank(MPI_COMM_WORLD, &self.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &self.ranks);
  keep_signals();
  int exit_code = 0;
  try {
    // All ranks have the same command line, so all throw or none.
    if (const auto arguments = parse(argc, argv)) {
      const Results results = measure(*arguments, self);
      together([&] {
        if (self.rank == 0) tell(results);
      });
      if (arguments->check) exit_code = kedge_bench::exit_code(results);
    } else if (self.rank == 0) {
      std::cout << help() << std::flush;
    }
  } catch (const std::exception& error) {
    if (self.rank == 0) std::cerr << "kedge-bench: " << error.what() << std::endl;
    exit_code = kNotMeasured;
  }
  MPI_Finalize();
  return exit_code;
}

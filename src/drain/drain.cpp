#include "drain/drain.hpp"

#include <algorithm>
#include <exception>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/attempt.hpp"
#include "base/options_fields.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "comm/hosted/hosted_ranks.hpp"
#include "drain/placement.hpp"
#include "drain/survivors.hpp"
#include "kedge/engine.hpp"
#include "persist/prefix_runs.hpp"
#include "persist/run_removal.hpp"
#include "persist/tag_directory.hpp"

namespace kedge::drain {
namespace {

/// A drain is no new start of the job: it changes nothing of what the job's options decide for later.
Options for_drain(Options options) {
  options.open.fresh = false;
  options.open.accept_fingerprint = false;
  options.fingerprint.clear();
  options.fingerprint_files.clear();
  options.pipeline.mode = PipelineMode::inline_;
  // The stores go only when what is in them is safe.
  if (options.store.on_exit == OnExit::remove) options.store.on_exit = OnExit::remove_if_persistent;
  return options;
}

/// What process 0 knows of the run from its prefix.
struct Known {
  std::string run;
  persist::RunRecord record;
  std::string newest;                  ///< on the prefix, for people; empty if there is none
  std::uint64_t generation_there = 0;  ///< of it
};

std::string named(std::string_view tag, std::uint64_t generation) {
  return compose("{} (generation {})", tag, generation);
}

/// What process 0 decides for all.
struct Decision {
  std::uint64_t generation = 0;  ///< the newest that any store has; 0: none
  std::vector<int> hosts;        ///< by rank of the job
};

/// Pure. Ranks lie where the newest that they have is.
Decision decide(std::span<const comm::Addressed<Survivor>> seen, int processes) {
  Decision decision;
  std::uint32_t world_size = 0;
  for (const auto& [process, one] : seen) {
    if (one.generation <= decision.generation) continue;
    decision.generation = one.generation;
    world_size = one.world_size;
  }
  const auto counts = [&](const Survivor& one) {
    return one.world_size == world_size && one.logical_rank < world_size;
  };
  std::vector<std::uint64_t> newest(world_size);
  for (const auto& [process, one] : seen) {
    if (counts(one)) newest[one.logical_rank] = std::max(newest[one.logical_rank], one.generation);
  }
  std::vector<Sighting> sightings;
  for (const auto& [process, one] : seen) {
    if (counts(one) && one.generation == newest[one.logical_rank]) sightings.push_back({process, one.logical_rank});
  }
  decision.hosts = place_ranks(world_size, processes, sightings);
  return decision;
}

class Drain {
 public:
  Drain(const comm::Group& processes, comm::ProcessLink* link, Options options, engine::Environment environment)
      : processes_(processes),
        link_(link),
        options_(for_drain(std::move(options))),
        environment_(std::move(environment)) {}

  std::string operator()() {
    processes_.together([&] {
      comm::throw_if(options_.load_failure);
      comm::throw_if(check(options_));
      if (processes_.is_root()) find_run();
    });
    share_run();
    Decision decision = decide(look(), processes_.size());
    processes_.broadcast(decision.generation);
    processes_.broadcast(decision.hosts);
    if (decision.generation == 0) return nothing_seen();
    if (decision.generation <= known_.generation_there) {
      return compose("nothing to drain: {} is on the prefix", known_.newest);
    }
    return flush_by(decision.hosts);
  }

 private:
  /// Local, process 0.
  void find_run() {
    fs::FileSystem& files = *environment_.file_system;
    const std::string& given = options_.persistent.path;
    if (!files.status(given)) {
      throw Error(Failure{ErrorCode::not_found, "there is no such prefix; give that of the job", -1, given, 0});
    }
    const std::string prefix = files.canonical(given);
    known_.run = options_.run;
    const bool has_runs = files.status(persist::records_directory(prefix)).has_value();
    if (known_.run.empty()) {
      const auto runs = has_runs ? persist::runs_with_checkpoints(files, prefix) : std::vector<std::string>();
      known_.run = persist::choose_run("", runs, false);
    }
    const std::string directory = persist::records_directory(prefix, known_.run);
    std::optional<persist::RunRecord> record;
    if (has_runs) record = persist::read_run_record(files, directory).record;
    if (!record && files.status(directory)) record = persist::read_record_of_starts(files, directory);
    if (!record) {
      throw Error(Failure{
          ErrorCode::not_found,
          compose("no run '{}' is recorded on this prefix; the first line of the job's log names both", known_.run), -1,
          prefix, 0});
    }
    known_.record = *record;
    for (const persist::TagEntry& entry : persist::find_on_prefix(files, prefix, known_.run).entries) {
      if (entry.commit.run_id != record->run_id || entry.commit.generation <= known_.generation_there) continue;
      known_.generation_there = entry.commit.generation;
      known_.newest = named(entry.commit.tag, entry.commit.generation);
    }
  }

  void share_run() {
    processes_.broadcast(known_.run);
    processes_.broadcast(known_.record.run_id);
    processes_.broadcast(known_.record.place_id);
    processes_.broadcast(known_.record.store);
    processes_.broadcast(known_.newest);
    processes_.broadcast(known_.generation_there);
    options_.run = known_.run;
  }

  /// What all processes see, on process 0.
  std::vector<comm::Addressed<Survivor>> look() {
    std::vector<comm::Addressed<Survivor>> to_root;
    processes_.together([&] {
      const Survivors here = survivors_here(environment_, options_, known_.run, known_.record);
      if (!here.used_by.empty()) {
        throw Error(Failure{ErrorCode::busy,
                            compose("a job works with this store ({}); drain it when the job has ended", here.used_by),
                            -1, here.stores.front(), 0});
      }
      for (const Survivor& one : here.containers) to_root.push_back({0, one});
    });
    return processes_.exchange(to_root);
  }

  [[nodiscard]] std::string nothing_seen() const {
    const std::string where = compose("no store here has a checkpoint of run '{}'", known_.run);
    const std::string hint =
        known_.record.store.empty() ? "" : compose(" (rank 0's was {} at its last commit)", known_.record.store);
    if (known_.newest.empty()) {
      throw Error(
          ErrorCode::not_found,
          compose("{}{}, and the prefix has none; run this on the job's nodes, with its store.path", where, hint));
    }
    return compose("nothing to drain: {}{}; the newest on the prefix is {}", where, hint, known_.newest);
  }

  std::string flush_by(const std::vector<int>& hosts) {
    std::optional<std::string> words;
    const auto failure = attempt([&] {
      comm::HostedRanks ranks(hosts, link_);
      const auto thrown = ranks.run([&](int rank, std::unique_ptr<Transport> transport) {
        std::string said = work(communicate_over(std::move(transport)));
        if (rank == 0) words = std::move(said);
      });
      for (const std::exception_ptr& one : thrown) {
        if (one) std::rethrow_exception(one);
      }
    });
    comm::throw_if(processes_.vote(failure));
    return processes_.text_of_lowest(words);
  }

  /// COLLECTIVE over the ranks of the job: a start of it, which opens and flushes and ends.
  [[nodiscard]] std::string work(std::unique_ptr<Communicator> communicator) const {
    Engine engine = engine::Environment::make_engine(std::move(communicator), options_, environment_);
    const std::optional<Tag> tag = engine.open();
    if (!tag) {
      engine.finalize();
      return compose("nothing to drain: no checkpoint of run '{}' can be recovered", known_.run);
    }
    const CheckpointInfo info = engine.info();
    const bool was_there = engine.level(*tag) == Level::persistent;
    if (!was_there) engine.wait(*tag, Level::persistent);
    engine.close();
    engine.finalize();
    const std::string name = named(*tag, info.generation);
    if (was_there) {
      return compose("nothing to drain: {} is the newest that can be recovered, and is on the prefix", name);
    }
    return compose("drained {}, {}: {}", name, human_bytes(info.total_bytes),
                   fs::join(options_.persistent.path, persist::directory_name(info)));
  }

  const comm::Group& processes_;
  comm::ProcessLink* link_;
  Options options_;
  engine::Environment environment_;
  Known known_;
};

}  // namespace

std::string drain(const comm::Group& processes, comm::ProcessLink* link, Options options,
                  engine::Environment environment) {
  return Drain(processes, link, std::move(options), std::move(environment))();
}

}  // namespace kedge::drain

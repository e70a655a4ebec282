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
#include "drain/flush_newest.hpp"
#include "drain/known_run.hpp"
#include "drain/placement.hpp"
#include "drain/survivors.hpp"
#include "persist/tag_directory.hpp"

namespace kedge::drain {
namespace {

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
        options_(options_to_flush(std::move(options))),
        environment_(std::move(environment)) {}

  std::string operator()() {
    processes_.together([&] {
      comm::throw_if(options_.load_failure);
      comm::throw_if(check(options_));
      if (processes_.is_root()) {
        known_ = find_run(*environment_.file_system, options_.persistent.path, options_.run);
      }
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
  void share_run() {
    processes_.broadcast(known_.name);
    processes_.broadcast(known_.record.run_id);
    processes_.broadcast(known_.record.place_id);
    processes_.broadcast(known_.record.store);
    processes_.broadcast(known_.newest);
    processes_.broadcast(known_.generation_there);
    options_.run = known_.name;
  }

  /// What all processes see, on process 0.
  std::vector<comm::Addressed<Survivor>> look() {
    std::vector<comm::Addressed<Survivor>> to_root;
    processes_.together([&] {
      const Survivors here = survivors_here(environment_, options_, known_.name, known_.record);
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
    const std::string where = compose("no store here has a checkpoint of run '{}'", known_.name);
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

  /// COLLECTIVE over the ranks of the job.
  [[nodiscard]] std::string work(std::unique_ptr<Communicator> communicator) const {
    const auto flushed = flush_newest(std::move(communicator), options_, environment_);
    if (!flushed) return compose("nothing to drain: no checkpoint of run '{}' can be recovered", known_.name);
    const std::string name = named(flushed->commit.tag, flushed->commit.generation);
    if (flushed->was_there) {
      return compose("nothing to drain: {} is the newest that can be recovered, and is on the prefix", name);
    }
    return compose("drained {}, {}: {}", name, human_bytes(flushed->total_bytes),
                   fs::join(options_.persistent.path, persist::directory_name(flushed->commit)));
  }

  const comm::Group& processes_;
  comm::ProcessLink* link_;
  Options options_;
  engine::Environment environment_;
  KnownRun known_;
};

}  // namespace

std::string drain(const comm::Group& processes, comm::ProcessLink* link, Options options,
                  engine::Environment environment) {
  return Drain(processes, link, std::move(options), std::move(environment))();
}

}  // namespace kedge::drain

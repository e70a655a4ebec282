#include "drain/drain.hpp"

#include <algorithm>
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
#include "drain/recorded_run.hpp"
#include "drain/placement.hpp"
#include "drain/survivors.hpp"
#include "persist/tag_directory.hpp"

namespace kedge::drain {
namespace {

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
        known_ = find_recorded_run(*environment_.file_system, options_.persistent.path, options_.run);
      }
    });
    share_run();
    const std::vector<Sighting> seen = look();
    std::uint64_t newest = newest_generation(seen);
    std::vector<int> hosts = lay_out(seen, processes_.size()).hosts;
    processes_.broadcast(newest);
    processes_.broadcast(hosts);
    if (newest == 0) return nothing_seen();
    if (newest <= known_.generation_there) {
      return compose("nothing to drain: {} is already on the prefix", known_.newest);
    }
    return flush_by(hosts);
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
  std::vector<Sighting> look() {
    std::vector<comm::Addressed<Survivor>> to_root;
    processes_.together([&] {
      const Survivors here = survivors_here(environment_, options_, known_.name, known_.record);
      if (!here.used_by.empty()) {
        throw Error(Failure{ErrorCode::busy,
                            compose("the store is in use by a job ({}); run kedge drain again after that job has ended",
                                    here.used_by),
                            -1, here.stores.front(), 0});
      }
      for (const Survivor& one : here.containers) to_root.push_back({0, one});
    });
    std::vector<Sighting> seen;
    for (const auto& [process, one] : processes_.exchange(to_root)) seen.push_back({process, one});
    return seen;
  }

  [[nodiscard]] std::string nothing_seen() const {
    const std::string where = compose("no store here has a checkpoint of run '{}'", known_.name);
    const std::string hint =
        known_.record.store.empty() ? "" : compose(" (rank 0's was {} at its last commit)", known_.record.store);
    if (known_.newest.empty()) {
      throw Error(
          ErrorCode::not_found,
          compose("{}{}, and the prefix has none; run this on the job's nodes and with the job's store.path", where, hint));
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
      }, comm::Group::Seconds(options_.comm.timeout_s));
      comm::rethrow_cause(thrown);
    });
    comm::throw_if(processes_.vote(failure));
    return processes_.text_of_lowest(words);
  }

  /// COLLECTIVE over the ranks of the job.
  [[nodiscard]] std::string work(std::unique_ptr<Communicator> communicator) const {
    const Flushed flushed = flush_newest(std::move(communicator), options_, environment_);
    const std::string name = named(flushed.commit.tag, flushed.commit.generation);
    if (flushed.was_there) {
      return compose("nothing to drain: {} is the newest that can be recovered, and is on the prefix", name);
    }
    return compose("drained {}, {}: {}", name, human_bytes(flushed.total_bytes),
                   fs::join(options_.persistent.path, persist::directory_name(flushed.commit)));
  }

  const comm::Group& processes_;
  comm::ProcessLink* link_;
  Options options_;
  engine::Environment environment_;
  RecordedRun known_;
};

}  // namespace

std::string drain(const comm::Group& processes, comm::ProcessLink* link, Options options,
                  engine::Environment environment) {
  return Drain(processes, link, std::move(options), std::move(environment))();
}

}  // namespace kedge::drain

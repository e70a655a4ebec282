#include "drain/drain.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/attempt.hpp"
#include "base/options_fields.hpp"
#include "base/text.hpp"
#include "comm/hosted/hosted_ranks.hpp"
#include "drain/flush_newest.hpp"
#include "drain/newest_first.hpp"
#include "drain/placement.hpp"
#include "drain/recorded_run.hpp"
#include "drain/stores_content.hpp"
#include "persist/tag_directory.hpp"

namespace kedge::drain {
namespace {

class Drain {
 public:
  Drain(const comm::Group& processes, comm::ProcessLink* link, Options options, start::Environment environment,
        bool overtakes)
      : processes_(processes),
        link_(link),
        options_(options_to_flush(std::move(options))),
        environment_(std::move(environment)),
        overtakes_(overtakes) {}

  std::string operator()() {
    processes_.run_on_all_ranks([&] {
      comm::throw_if(options_.load_failure);
      comm::throw_if(check_options(options_));
      if (processes_.is_root()) {
        known_ = find_recorded_run(*environment_.file_system, options_.persistent.path, options_.run);
        note_other_runs();
      }
    });
    share_run();
    const std::vector<SeenContainer> seen = survey_stores();
    bool sees_any = !seen.empty();
    const std::vector<SeenContainer> missing = find_missing(known_.there, seen);
    newest_ = newest_of(missing);
    std::vector<FlushPass> passes = plan_flush_passes(missing, processes_.size());
    processes_.broadcast(sees_any);
    processes_.broadcast(newest_);
    if (!sees_any) return no_store_message() + other_runs_;
    if (newest_.generation == 0) return nothing_newer_message() + other_runs_;
    if (!overtakes_)
      processes_.run_on_all_ranks([&] { comm::throw_if(check_no_later_start(known_, newest_.incarnation)); });
    share(passes);
    return flush(passes) + other_runs_;
  }

 private:
  void share_run() {
    processes_.broadcast(other_runs_);
    processes_.broadcast(known_.name);
    processes_.broadcast(known_.record.run_id);
    processes_.broadcast(known_.record.prefix_id);
    processes_.broadcast(known_.record.store);
    processes_.broadcast(known_.newest);
    processes_.broadcast(known_.newest_start);
    processes_.broadcast(known_.newest_start_ended);
    processes_.broadcast(known_.there.generation);
    processes_.broadcast(known_.there.world_size);
    options_.run = known_.name;
  }

  /// Local. Notes that other runs exist, unless a run was named.
  void note_other_runs() {
    if (!options_.run.empty()) return;
    for (const std::string& run : recorded_runs(*environment_.file_system, options_.persistent.path, "")) {
      if (run != known_.name) other_runs_ += compose("{}'{}'", other_runs_.empty() ? "" : ", ", run);
    }
    if (other_runs_.empty()) return;
    other_runs_ = compose("; of run '{}', the prefix also has {} (--run, --all-runs)", known_.name, other_runs_);
  }

  /// Gathers the containers that all processes see, on process 0.
  std::vector<SeenContainer> survey_stores() {
    std::vector<comm::Addressed<StoredContainer>> to_root;
    bool sees_store = false;
    bool newest_start_died = false;
    processes_.run_on_all_ranks([&] {
      const StoresContent here = wait_until_free(
          *environment_.clock, [&] { return find_stores_content(environment_, options_, known_.name, known_.record); });
      if (!here.used_by.empty()) {
        refuse(ErrorCode::busy,
               compose("the store on node {} is in use by a job ({}); run kedge drain again after that job has ended",
                       node_of(environment_), here.used_by),
               here.stores.front());
      }
      sees_store = !here.stores.empty();
      newest_start_died = std::ranges::find(here.dead_starts, known_.newest_start) != here.dead_starts.end();
      for (const StoredContainer& one : here.containers) to_root.push_back({0, one});
      tags_ = here.outputs;
    });
    sees_store_ = processes_.any(sees_store);
    if (processes_.any(newest_start_died)) known_.newest_start_ended = true;
    std::vector<SeenContainer> seen;
    for (const auto& [process, one] : processes_.exchange(to_root)) seen.push_back({process, one});
    return seen;
  }

  [[nodiscard]] std::string no_store_message() const {
    const std::string there =
        known_.newest.empty() ? "the prefix has none either" : compose("the newest on the prefix is {}", known_.newest);
    if (sees_store_ && !known_.newest.empty()) {
      return compose("nothing to drain: the stores have no checkpoint of run '{}'; {}", known_.name, there);
    }
    const std::string hint =
        known_.record.store.empty() ? "" : compose(" (rank 0's was {} at its last commit)", known_.record.store);
    throw Error(ErrorCode::not_found,
                compose("no store of run '{}' is here{}, and {}; run this on the job's nodes and with the job's "
                        "options and environment (store.path, KEDGE_NODE)",
                        known_.name, hint, there));
  }

  [[nodiscard]] std::string nothing_newer_message() const {
    require_usable_prefix();
    return compose("nothing to drain: {} is already on the prefix", known_.newest);
  }

  /// COLLECTIVE. Throws corrupt if the newest checkpoint on the prefix is damaged, judging by names and sizes.
  void require_usable_prefix() const {
    const std::string damage = processes_.text_of_lowest_rank(
        processes_.is_root() ? std::optional(describe_damage(environment_.file_system, known_, options_))
                             : std::nullopt);
    if (damage.empty()) return;
    throw Error(ErrorCode::corrupt,
                compose("{} is on the prefix, but damaged there ({}); keep the stores: the next start repairs what it "
                        "needs from them",
                        known_.newest, damage));
  }

  /// COLLECTIVE. Sends each process the parts of process 0's passes that it needs.
  void share(std::vector<FlushPass>& passes) const {
    std::uint64_t count = passes.size();
    processes_.broadcast(count);
    passes.resize(count);
    for (FlushPass& pass : passes) {
      std::vector<std::uint64_t> outputs(pass.outputs.begin(), pass.outputs.end());
      processes_.broadcast(pass.newest_checkpoint);
      processes_.broadcast(pass.layout.world_size);
      processes_.broadcast(pass.layout.hosts);
      processes_.broadcast(outputs);
      pass.outputs = {outputs.begin(), outputs.end()};
    }
  }

  /// What a pass did; equal on all processes.
  struct Done {
    std::uint64_t generation = 0;  ///< of the newest checkpoint that it can recover; 0 if there is none
    std::uint64_t is_flushed = 0;
    std::uint64_t was_there = 0;
    std::uint64_t outputs = 0;  ///< flushed outputs
    std::string checkpoint;     ///< text about it
  };

  std::string flush(const std::vector<FlushPass>& passes) {
    names_ranks_ = std::ranges::any_of(passes, [&](const FlushPass& pass) {
      return pass.with_checkpoint() && pass.layout.world_size != passes.front().layout.world_size;
    });
    newest_seen_ = passes.front().newest_checkpoint;
    std::vector<std::optional<Done>> done(passes.size());
    Search search = flush_newest_of(known_.there, passes, [&](std::size_t pass, std::uint64_t at_least) {
      Done now = checkpoint_by(passes[pass], at_least);
      now.outputs += done[pass].value_or(Done{}).outputs;
      done[pass] = now;
      return Tried{now.generation, now.is_flushed != 0, now.was_there != 0};
    });
    const bool is_on_prefix = !search.found && !search.failure && newest_seen_ != 0;
    if (is_on_prefix) search.failure = attempt([&] { require_usable_prefix(); });
    const std::uint64_t outputs = flush_outputs_left(passes, done, search);
    const std::string drained = outputs_of(outputs);
    if (search.failure) {
      if (!drained.empty()) search.failure->message += compose("; drained{} nevertheless", drained);
      throw Error(*search.failure);
    }
    if (search.found || is_on_prefix) {
      const std::string words = search.found ? describe(*done[*search.found]) : newest_is_there(known_.newest);
      return drained.empty() ? words : compose("{}; and{} of other numbers of ranks", words, drained);
    }
    if (!drained.empty()) {
      return compose("drained{}{}", drained,
                     known_.newest.empty() ? "" : compose("; {} is already on the prefix", known_.newest));
    }
    throw Error(ErrorCode::unrecoverable, "the outputs in the stores that are not on the prefix cannot be recovered");
  }

  /// COLLECTIVE. Flushes the outputs of the passes that are not done, also if no checkpoint can be flushed. Returns how
  /// many outputs all passes flushed but the one that the search found; adds a failure to the search.
  std::uint64_t flush_outputs_left(const std::vector<FlushPass>& passes, const std::vector<std::optional<Done>>& done,
                                   Search& search) {
    std::uint64_t outputs = 0;
    for (std::size_t pass = 0; pass < passes.size(); ++pass) {
      if (done[pass]) {
        if (pass != search.found) outputs += done[pass]->outputs;
        continue;
      }
      if (passes[pass].outputs.empty()) continue;
      try {
        outputs += outputs_by(passes[pass]);
      } catch (const Error& error) {
        if (comm::ends_communication(error.code())) throw;
        if (!search.failure) search.failure = error.failure();
      }
    }
    return outputs;
  }

  static std::string newest_is_there(const std::string& name) {
    return compose("nothing to drain: {} is the newest that can be recovered, and is on the prefix", name);
  }

  /// Text about a pass whose checkpoint is on the prefix now.
  [[nodiscard]] std::string describe(const Done& done) const {
    const std::string outputs = outputs_of(done.outputs);
    if (done.is_flushed != 0) {
      return compose(
          "drained {}{}{}", done.checkpoint, outputs.empty() ? "" : ", and" + outputs,
          done.generation < newest_seen_
              ? compose("; the stores keep what they have of generation {}, which is incomplete", newest_seen_)
              : "");
    }
    return outputs.empty() ? newest_is_there(done.checkpoint)
                           : compose("drained{}; {} is already on the prefix", outputs, done.checkpoint);
  }

  /// COLLECTIVE. Flushes the pass's outputs, and its newest checkpoint if it has this generation.
  Done checkpoint_by(const FlushPass& pass, std::uint64_t at_least) {
    return flush_by(pass, [&](std::unique_ptr<Communicator> communicator) {
      const Flushed flushed = flush_newest(std::move(communicator), options_, environment_, at_least);
      Done done{0, flushed.is_flushed ? 1U : 0U, flushed.was_there ? 1U : 0U, flushed.outputs, {}};
      if (!flushed.commit) return done;
      done.generation = flushed.commit->generation;
      done.checkpoint = text_of(flushed);
      return done;
    });
  }

  /// COLLECTIVE. Returns the number of flushed outputs.
  std::uint64_t outputs_by(const FlushPass& pass) {
    const std::vector<Tag> tags = tags_of(pass);
    const auto work = [&](std::unique_ptr<Communicator> communicator) {
      Done done;
      done.outputs = flush_outputs(std::move(communicator), options_, environment_, tags).outputs;
      return done;
    };
    return flush_by(pass, work).outputs;
  }

  /// COLLECTIVE. Tags of the pass's outputs, each once, oldest first.
  [[nodiscard]] std::vector<Tag> tags_of(const FlushPass& pass) const {
    std::vector<Tag> tags;
    for (const std::uint64_t generation : pass.outputs) {
      const auto found = tags_.find(generation);
      const Tag tag =
          processes_.text_of_lowest_rank(found == tags_.end() ? std::nullopt : std::optional(found->second));
      if (!tag.empty() && std::ranges::find(tags, tag) == tags.end()) tags.push_back(tag);
    }
    return tags;
  }

  /// COLLECTIVE. Runs `work` on the ranks hosted by the processes; returns rank 0's result.
  template <class Work>
  Done flush_by(const FlushPass& pass, const Work& work) {
    std::optional<Done> mine;
    const auto failure = attempt([&] {
      comm::HostedRanks ranks(pass.layout.hosts, link_);
      const auto thrown = ranks.run(
          [&](int rank, std::unique_ptr<Transport> transport) {
            Done done = work(make_communicator(std::move(transport)));
            if (rank == 0) mine = std::move(done);
          },
          comm::Group::Seconds(options_.comm.timeout_s));
      comm::rethrow_cause(thrown);
    });
    comm::throw_if(processes_.vote(failure));
    const Done rank_0 = mine.value_or(Done{});
    return {processes_.max(rank_0.generation), processes_.max(rank_0.is_flushed), processes_.max(rank_0.was_there),
            processes_.max(rank_0.outputs),
            processes_.text_of_lowest_rank(mine ? std::optional(rank_0.checkpoint) : std::nullopt)};
  }

  /// A checkpoint's name, and, if this flushed it, its size and place.
  [[nodiscard]] std::string text_of(const Flushed& flushed) const {
    const std::string name = commit_text(flushed.commit->tag, flushed.commit->generation);
    if (!flushed.is_flushed) return name;
    return compose("{}{}, {}: {}", name, names_ranks_ ? compose(" of {} ranks", flushed.commit->world_size) : "",
                   human_bytes(flushed.total_bytes),
                   fs::join(options_.persistent.path, persist::tag_directory_name(*flushed.commit)));
  }

  const comm::Group& processes_;
  comm::ProcessLink* link_;
  Options options_;
  start::Environment environment_;
  bool overtakes_;
  RecordedRun known_;
  StoredContainer newest_;             ///< newest on any process, not on the prefix
  std::uint64_t newest_seen_ = 0;      ///< generation of the newest checkpoint on any process, not on the prefix
  bool names_ranks_ = false;           ///< checkpoints of several numbers of ranks were seen
  std::map<std::uint64_t, Tag> tags_;  ///< of this process's outputs, by generation
  std::string other_runs_;             ///< text to append to the result
  bool sees_store_ = false;
};

}  // namespace

std::string drain(const comm::Group& processes, comm::ProcessLink* link, Options options,
                  start::Environment environment, bool overtakes) {
  return Drain(processes, link, std::move(options), std::move(environment), overtakes)();
}

}  // namespace kedge::drain

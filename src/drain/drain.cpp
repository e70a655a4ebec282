#include "drain/drain.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/attempt.hpp"
#include "base/options_fields.hpp"
#include "base/text.hpp"
#include "comm/hosted/hosted_ranks.hpp"
#include "drain/flush_newest.hpp"
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
    std::vector<SeenContainer> missing = find_missing(known_.there, seen);
    newest_ = newest_of(missing);
    std::vector<FlushPass> shifts = plan_flush_passes(missing, processes_.size());
    std::erase_if(missing, [](const SeenContainer& one) { return one.container.is_output; });
    newest_checkpoint_ = newest_of(missing);
    processes_.broadcast(sees_any);
    processes_.broadcast(newest_);
    if (!sees_any) return no_store_message() + other_runs_;
    if (newest_.generation == 0) return nothing_newer_message() + other_runs_;
    if (!overtakes_)
      processes_.run_on_all_ranks([&] { comm::throw_if(check_no_later_start(known_, newest_.incarnation)); });
    share(shifts);
    return flush(shifts) + other_runs_;
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
    const std::string damage = processes_.text_of_lowest_rank(
        processes_.is_root() ? std::optional(describe_damage(environment_.file_system, known_, options_))
                             : std::nullopt);
    if (damage.empty()) return compose("nothing to drain: {} is already on the prefix", known_.newest);
    throw Error(ErrorCode::corrupt,
                compose("{} is on the prefix, but damaged there ({}); keep the stores: the next start repairs what it "
                        "needs from them",
                        known_.newest, damage));
  }

  /// COLLECTIVE. Sends each process the parts of process 0's passes that it needs.
  void share(std::vector<FlushPass>& shifts) const {
    std::uint64_t count = shifts.size();
    processes_.broadcast(count);
    shifts.resize(count);
    for (FlushPass& shift : shifts) {
      std::vector<std::uint64_t> outputs(shift.outputs.begin(), shift.outputs.end());
      processes_.broadcast(shift.with_checkpoint);
      processes_.broadcast(shift.layout.hosts);
      processes_.broadcast(outputs);
      shift.outputs = {outputs.begin(), outputs.end()};
    }
  }

  std::string flush(const std::vector<FlushPass>& shifts) {
    std::string words;
    std::uint64_t outputs = 0;
    std::optional<Failure> failed;  // the outputs of other numbers of ranks are flushed nevertheless
    for (const FlushPass& shift : shifts) {
      try {
        if (shift.with_checkpoint) words = checkpoint_by(shift);
        else outputs += outputs_by(shift);
      } catch (const Error& error) {
        if (comm::ends_communication(error.code())) throw;
        if (!failed) failed = error.failure();
      }
    }
    const std::string drained = outputs_of(Flushed{{}, 0, false, outputs});
    if (failed) {
      if (!drained.empty()) failed->message += compose("; drained{} of other numbers of ranks nevertheless", drained);
      throw Error(*failed);
    }
    if (!words.empty()) return drained.empty() ? words : compose("{}; and{} of other numbers of ranks", words, drained);
    if (!drained.empty()) {
      return compose("drained{}{}", drained,
                     known_.newest.empty() ? "" : compose("; {} is already on the prefix", known_.newest));
    }
    throw Error(ErrorCode::unrecoverable, "the outputs in the stores that are not on the prefix cannot be recovered");
  }

  /// COLLECTIVE. Text about the flushed checkpoint.
  std::string checkpoint_by(const FlushPass& shift) {
    return flush_by(shift, [&](std::unique_ptr<Communicator> communicator) { return work(std::move(communicator)); });
  }

  /// COLLECTIVE. Returns the number of flushed outputs.
  std::uint64_t outputs_by(const FlushPass& shift) {
    const std::vector<Tag> tags = tags_of(shift);
    const std::string text = flush_by(shift, [&](std::unique_ptr<Communicator> communicator) {
      return compose("{}", flush_outputs(std::move(communicator), options_, environment_, tags).outputs);
    });
    std::uint64_t count = 0;
    (void)std::from_chars(text.data(), text.data() + text.size(), count);
    return count;
  }

  /// COLLECTIVE. Tags of the pass's outputs, each once, oldest first.
  [[nodiscard]] std::vector<Tag> tags_of(const FlushPass& shift) const {
    std::vector<Tag> tags;
    for (const std::uint64_t generation : shift.outputs) {
      const auto found = tags_.find(generation);
      const Tag tag =
          processes_.text_of_lowest_rank(found == tags_.end() ? std::nullopt : std::optional(found->second));
      if (!tag.empty() && std::ranges::find(tags, tag) == tags.end()) tags.push_back(tag);
    }
    return tags;
  }

  /// COLLECTIVE. Runs `work` on the ranks hosted by the processes; returns rank 0's result.
  template <class Work>
  std::string flush_by(const FlushPass& shift, const Work& work) {
    std::optional<std::string> words;
    const auto failure = attempt([&] {
      comm::HostedRanks ranks(shift.layout.hosts, link_);
      const auto thrown = ranks.run(
          [&](int rank, std::unique_ptr<Transport> transport) {
            std::string said = work(make_communicator(std::move(transport)));
            if (rank == 0) words = std::move(said);
          },
          comm::Group::Seconds(options_.comm.timeout_s));
      comm::rethrow_cause(thrown);
    });
    comm::throw_if(processes_.vote(failure));
    return processes_.text_of_lowest_rank(words);
  }

  /// COLLECTIVE over the job's ranks.
  [[nodiscard]] std::string work(std::unique_ptr<Communicator> communicator) const {
    const Flushed flushed = flush_newest(std::move(communicator), options_, environment_);
    const std::string outputs = outputs_of(flushed);
    if (!flushed.commit) return compose("drained{}", outputs);
    const std::string name = commit_text(flushed.commit->tag, flushed.commit->generation);
    if (flushed.was_there) {
      return outputs.empty()
                 ? compose("nothing to drain: {} is the newest that can be recovered, and is on the prefix", name)
                 : compose("drained{}; {} is already on the prefix", outputs, name);
    }
    return compose("drained {}, {}: {}{}{}", name, human_bytes(flushed.total_bytes),
                   fs::join(options_.persistent.path, persist::tag_directory_name(*flushed.commit)),
                   outputs.empty() ? "" : ", and" + outputs,
                   flushed.commit->generation < newest_checkpoint_.generation
                       ? compose("; the stores keep what they have of generation {}, which is incomplete",
                                 newest_checkpoint_.generation)
                       : "");
  }

  const comm::Group& processes_;
  comm::ProcessLink* link_;
  Options options_;
  start::Environment environment_;
  bool overtakes_;
  RecordedRun known_;
  StoredContainer newest_;             ///< newest on any process, not on the prefix
  StoredContainer newest_checkpoint_;  ///< newest checkpoint on any process; on process 0
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

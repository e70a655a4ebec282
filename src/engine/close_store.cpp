#include "engine/close_store.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "base/attempt.hpp"
#include "base/text.hpp"
#include "commits/commit_names.hpp"
#include "persist/prefix_retention.hpp"
#include "persist/tag_directory.hpp"

namespace kedge::engine {
namespace {

/// Space that the stores of all ranks take.
struct StoreUse {
  std::uint64_t while_running_bytes = 0;  ///< now, before what is idle is given back
  std::uint64_t kept_bytes = 0;           ///< for the next start
  std::uint64_t checkpoint_bytes = 0;     ///< the containers of the newest commit
  std::uint64_t nodes = 0;
};

class StoreCloser {
 public:
  explicit StoreCloser(const StoreClosing& closing) : its_(closing) {}

  void run() {
    if (its_.on_exit == OnExit::remove) remove_on_purpose();
    if (its_.on_exit == OnExit::remove_if_persistent) remove_if_persistent();
    StoreUse use;
    use.nodes = is_first_of_node() ? 1 : 0;
    // Files that stay after a failure are removed by the next start.
    if (const auto failure = attempt([&] { trim_store(use); })) {
      its_.log.warning("the node-local store could not be tidied up: " + to_string(*failure));
    }
    const auto local = attempt([&] { its_.started.node.lock->release(); });
    const auto all =
        its_.group.sum(std::array{use.while_running_bytes, use.kept_bytes, use.checkpoint_bytes, use.nodes});
    const auto failure = its_.group.vote(local);
    if (its_.group.is_root()) {
      if (!failure) (void)attempt([&] { its_.started.prefix.start->mark_ended(); });
      log_persistent();
      log_unflushed();
      log_kept({all[0], all[1], all[2], all[3]});
    }
    comm::throw_if(failure);
  }

 private:
  /// Local. Gives back what no commit needs, and measures.
  void trim_store(StoreUse& use) const {
    use.checkpoint_bytes = newest_bytes();
    use.while_running_bytes = store().slots.used_bytes();
    store().retirement.free_unused_storage();
    use.kept_bytes = store().slots.used_bytes();
  }

  [[nodiscard]] std::string flush_words() const { return how_to_flush(its_.started.prefix_path, its_.started.run); }
  [[nodiscard]] store::NodeStore& store() const { return *its_.started.node.store; }

  /// Removes the run's files, as was asked for, so that the next start may begin from zero. The containers go first, on
  /// every rank, and what says that commits exist last: a crash in between is `unrecoverable` at the next start, never
  /// a silent start from zero beside containers that live.
  void remove_on_purpose() {
    if (its_.ledger.known().lost) {
      if (its_.group.is_root()) {
        its_.log.warning(
            "store.on_exit = remove was not carried out: files of commits that could not be recovered are kept, in "
            "case the nodes with the other files come back");
      }
      return;
    }
    if (keeps_outputs("store.on_exit = remove")) return;
    its_.group.run_on_all_ranks([&] { store().remove_all_files(); });
    its_.markers.clear_cache();
    its_.ledger.clear();
  }

  /// The newest commit outlives the stores, if all of its containers are on the prefix as the manifest knows them.
  /// What says that commits exist stays.
  void remove_if_persistent() {
    const std::optional<commits::CommitEntry> newest = its_.ledger.known().newest_checkpoint();
    if (its_.ledger.known().lost || !newest || keeps_outputs("store.on_exit = remove_if_persistent")) return;
    std::optional<Failure> not_there;
    if (newest->persistent) not_there = its_.group.try_on_all_ranks([&] { require_containers(newest->commit); });
    if (newest->persistent && !not_there) {
      its_.group.run_on_all_ranks([&] { store().remove_all_files(); });
    } else if (its_.group.is_root()) {
      its_.log.info(compose("{} is not persistent; keeping the node-local files{}", newest->commit.tag,
                            not_there ? " (" + to_string(*not_there) + ")" : ""));
    }
  }

  /// Nothing but a flush takes outputs from the stores: they are on no list of what may be lost.
  [[nodiscard]] bool keeps_outputs(std::string_view option) const {
    const std::vector<CommitHead> outputs = its_.ledger.known().unflushed_outputs();
    if (!its_.group.any(!outputs.empty())) return false;
    if (its_.group.is_root()) {
      its_.log.warning(compose(
          "{} was not carried out: {} of the outputs could not be flushed and {} only in the node-local stores "
          "({}). {}",
          option, outputs.size(), outputs.size() == 1 ? "is" : "are", commits::list_tags(outputs), flush_words()));
    }
    return true;
  }

  /// Local. Of all logical ranks, which the processes share out: the commit may be of more ranks than this job has.
  void require_containers(const CommitHead& commit) const {
    const std::uint32_t processes = its_.group.world_size();
    for (std::uint32_t rank = its_.group.logical_rank().value; rank < commit.world_size; rank += processes) {
      (void)its_.started.prefix.storage.reader->open_container(persist::tag_directory_name(commit), commit,
                                                               LogicalRank{rank});
    }
  }

  /// Without a limit, the persistent commits grow until the filesystem is full.
  void log_persistent() const {
    std::vector<persist::TagEntry> entries;
    if (attempt(
            [&] { entries = persist::list_own_commits(*its_.started.prefix.storage.reader, its_.started.run.id); }) ||
        entries.empty()) {
      return;
    }
    std::uint64_t bytes = 0;
    for (const persist::TagEntry& entry : entries) bytes += entry.total_bytes;
    const auto outputs = std::ranges::count_if(entries, [](const auto& entry) { return entry.commit.is_output; });
    const auto checkpoints = static_cast<std::ptrdiff_t>(entries.size()) - outputs;
    const std::uint64_t keep = its_.persistent.keep;
    its_.log.info(compose("on the prefix: {} checkpoint{}{} of this run, {} (persistent.keep = {})", checkpoints,
                          checkpoints == 1 ? "" : "s",
                          outputs == 0 ? "" : compose(" and {} output{}", outputs, outputs == 1 ? "" : "s"),
                          human_bytes(bytes), keep == 0 ? "0: all are kept" : compose("{}", keep)));
  }

  /// The reason was logged when it was flushed.
  void log_unflushed() const {
    if (its_.on_exit == OnExit::keep) warn_of_unflushed_outputs(its_.ledger, flush_words(), its_.log);
    const std::optional<commits::CommitEntry> newest = its_.ledger.known().newest_checkpoint();
    const bool is_meant = its_.persistent.every != 0 && its_.on_exit != OnExit::remove;
    if (!is_meant || !newest || newest->persistent || its_.ledger.known().lost) return;
    const std::uint32_t ranks = newest->commit.world_size;
    const std::string how =
        how_to_flush(its_.started.prefix_path, its_.started.run, ranks == its_.group.world_size() ? 0 : ranks);
    its_.log.warning(
        compose("the newest checkpoint, {}, is only in the node-local stores. {}", newest->commit.tag, how));
  }

  /// Bytes of the newest commit's containers that this rank has.
  [[nodiscard]] std::uint64_t newest_bytes() const {
    const std::optional<commits::CommitEntry> newest = its_.ledger.known().newest_checkpoint();
    if (!newest) return 0;
    const auto size_of = [&](LogicalRank rank) {
      return store().files.size_bytes(store::FileKind::container, rank, {newest->commit.id, {}});
    };
    const std::uint32_t ranks = newest->commit.world_size;
    if (ranks == its_.group.world_size()) return size_of(its_.group.logical_rank());
    std::uint64_t bytes = 0;
    for (std::uint32_t rank = 0; rank < ranks; ++rank) bytes += size_of(LogicalRank{rank});
    return bytes;
  }

  [[nodiscard]] bool is_first_of_node() const { return its_.started.topology.node_ranks.front() == its_.group.rank(); }

  void log_kept(const StoreUse& use) const {
    if (use.kept_bytes == 0) return its_.log.info("finalized: nothing kept in the node-local store");
    its_.log.info(compose("finalized: {} {}{} kept for the next start{}; to free it{}: kedge drop {}",
                          human_bytes(use.kept_bytes),
                          store().directory.memory_backed() ? "of memory" : "of disk space",
                          use.nodes > 1 ? compose(" on {} nodes", use.nodes) : "", in_checkpoints(use),
                          use.nodes > 1 ? ", run on each node" : "", shell_word(store().directory.path())));
  }

  /// Store space in checkpoints: a user plans a node's memory with it.
  [[nodiscard]] static std::string in_checkpoints(const StoreUse& use) {
    if (use.checkpoint_bytes == 0) return {};
    const auto times = [&](std::uint64_t bytes) {
      return static_cast<double>(bytes) / static_cast<double>(use.checkpoint_bytes);
    };
    return compose(", {:.1f} times the newest checkpoint ({:.1f} times while the job ran)", times(use.kept_bytes),
                   times(use.while_running_bytes));
  }

  const StoreClosing& its_;
};

}  // namespace

void warn_of_unflushed_outputs(const commits::Ledger& ledger, const std::string& how_to_flush, const Log& log) {
  const std::vector<CommitHead> outputs = ledger.known().unflushed_outputs();
  if (outputs.empty()) return;
  log.warning(compose("{} of the outputs {} only in the node-local stores ({}). {}", outputs.size(),
                      outputs.size() == 1 ? "is" : "are", commits::list_tags(outputs), how_to_flush));
}

std::string how_to_flush(const std::string& prefix, const commits::RunIdentity& run, std::uint32_t ranks) {
  return compose(
      "To flush it when this job has ended, run with the job's options: kedge drain {} --run {}; or start the job "
      "again{}",
      shell_word(prefix), run.name, ranks == 0 ? "" : compose(" with {} ranks", ranks));
}

void close_store(const StoreClosing& closing) { StoreCloser(closing).run(); }

}  // namespace kedge::engine

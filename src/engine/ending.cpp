#include "engine/ending.hpp"

#include <optional>
#include <string>
#include <vector>

#include "base/attempt.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "persist/tag_directory.hpp"
#include "persist/tier_retention.hpp"

namespace kedge::engine {
namespace {

/// The path as a shell takes it for one word: people paste what the log says.
std::string shell_word(const std::string& path) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-";
  if (path.find_first_not_of(kPlain) == std::string::npos) return path;
  std::string word = "'";
  for (const char c : path) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

class Ending {
 public:
  Ending(const Setup& setup, const Started& started, const comm::Group& group, commits::Ledger& ledger,
         CommitNotes& notes)
      : setup_(setup), started_(started), group_(group), ledger_(ledger), notes_(notes) {}

  void run() {
    const OnExit on_exit = setup_.options.store.on_exit;
    if (on_exit == OnExit::remove) remove_on_purpose();
    if (on_exit == OnExit::remove_if_persistent) remove_if_persistent();
    std::uint64_t kept_bytes = 0;
    const auto local = attempt([&] {
      store().give_back_unused();
      kept_bytes = store().used_bytes();
      started_.node.lock->release();
    });
    kept_bytes = group_.sum(kept_bytes);
    const auto failure = group_.vote(local);
    if (group_.is_root()) {
      log_what_is_persistent();
      log_what_stays(kept_bytes);
    }
    comm::throw_if(failure);
  }

 private:
  [[nodiscard]] store::NodeStore& store() const { return *started_.node.store; }

  /// The next start may begin from zero, because this was asked for. The containers go first, on every rank, and what
  /// says that commits exist last: a crash in between is `unrecoverable` at the next start, never a silent start from
  /// zero beside containers that live.
  void remove_on_purpose() {
    if (ledger_.is_lost()) {
      if (group_.is_root()) {
        setup_.log.warning(
            "store.on_exit = remove was not carried out: the files of commits that could not be recovered are kept, "
            "in case the nodes that held the rest return");
      }
      return;
    }
    group_.together([&] { store().remove_all(); });
    notes_.forget();
    ledger_.forget_all();
  }

  /// The newest commit outlives the stores, if each rank finds its container on the prefix as the manifest knows it.
  /// What says that commits exist stays.
  void remove_if_persistent() {
    const std::optional<commits::Entry> newest = ledger_.newest();
    if (ledger_.is_lost() || !newest) return;
    std::optional<Failure> not_there;
    if (newest->persistent) not_there = group_.try_together([&] { require_container(newest->commit); });
    if (newest->persistent && !not_there) {
      group_.together([&] { store().remove_all(); });
    } else if (group_.is_root()) {
      setup_.log.info(compose("{} is not persistent; keeping the node-local files{}", newest->commit.tag,
                              not_there ? " (" + to_string(*not_there) + ")" : ""));
    }
  }

  void require_container(const CommitHead& commit) const {
    (void)started_.prefix.tier->open(persist::directory_name(commit), commit, group_.logical_rank());
  }

  /// What nobody limits grows until the filesystem is full.
  void log_what_is_persistent() const {
    std::vector<persist::TagEntry> entries;
    if (attempt([&] { entries = persist::own_commits(*started_.prefix.tier, started_.run.id); }) || entries.empty()) {
      return;
    }
    std::uint64_t bytes = 0;
    for (const persist::TagEntry& entry : entries) bytes += entry.total_bytes;
    const std::uint64_t keep = setup_.options.persistent.keep;
    setup_.log.info(compose("on the prefix: {} checkpoint{} of this run, {} (persistent.keep = {})", entries.size(),
                            entries.size() == 1 ? "" : "s", human_bytes(bytes),
                            keep == 0 ? "0: all are kept" : compose("{}", keep)));
  }

  void log_what_stays(std::uint64_t kept_bytes) const {
    if (kept_bytes == 0) return setup_.log.info("finalized: nothing kept in the node-local store");
    const bool several = started_.topology.node.size() < static_cast<std::size_t>(group_.size());
    setup_.log.info(compose("finalized: {} {} kept for the next start{}; to free it{}: kedge drop {}",
                            human_bytes(kept_bytes), store().memory_backed() ? "of memory" : "on disk",
                            several ? " on this node, and likewise on the others" : "",
                            several ? ", run on each node" : "", shell_word(store().directory())));
  }

  const Setup& setup_;
  const Started& started_;
  const comm::Group& group_;
  commits::Ledger& ledger_;
  CommitNotes& notes_;
};

}  // namespace

void leave_store(const Setup& setup, const Started& started, const comm::Group& group, commits::Ledger& ledger,
                 CommitNotes& notes) {
  Ending(setup, started, group, ledger, notes).run();
}

}  // namespace kedge::engine

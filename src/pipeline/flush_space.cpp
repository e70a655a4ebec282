// Flushing to a prefix without enough space: removes what persistent.keep permits before the flush instead of after it.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/attempt.hpp"
#include "base/text.hpp"
#include "comm/group.hpp"
#include "commits/commit_record.hpp"
#include "kedge/types.hpp"
#include "persist/prefix_storage.hpp"
#include "persist/tags.hpp"
#include "pipeline/flush_stage.hpp"

namespace kedge::pipeline {
namespace {

struct NewestRecoverable {
  std::optional<Id128> commit_id;  ///< none if no commit is complete
  std::set<Id128> broken;          ///< newer, incomplete ones
};

/// Local. Checks the containers in this process's share.
bool sees_own_containers(const comm::Group& group, persist::PrefixReader& prefix, const std::string& directory,
                         const CommitHead& commit) {
  const auto failure = attempt([&] {
    if (group.is_root()) (void)prefix.read_commit(directory);
    const auto step = static_cast<std::uint64_t>(group.size());
    for (auto rank = static_cast<std::uint64_t>(group.rank()); rank < commit.world_size; rank += step) {
      (void)prefix.open_container(directory, commit, LogicalRank{static_cast<std::uint32_t>(rank)});
    }
  });
  return !failure;
}

/// COLLECTIVE. Checks rank 0's `entries` in order until one is complete: all its containers exist and match manifest,
/// superblock and index. Equal on every rank.
NewestRecoverable find_newest_whole(const comm::Group& group, persist::PrefixReader& prefix,
                                    const std::vector<persist::TagEntry>& entries) {
  NewestRecoverable found;
  std::uint64_t count = entries.size();
  group.broadcast(count);
  for (std::uint64_t at = 0; at < count; ++at) {
    std::string directory;
    commits::CommitRecord record;
    if (group.is_root()) {
      directory = entries[at].directory;
      record = commits::to_record(entries[at].commit);
    }
    group.broadcast(directory);
    group.broadcast(record);
    const CommitHead commit = commits::to_head(record);
    if (group.all(sees_own_containers(group, prefix, directory, commit))) {
      found.commit_id = commit.id;
      break;
    }
    found.broken.insert(commit.id);
  }
  return found;
}

constexpr double kRemovalBudget_s = 60;
constexpr double kRoomStep_s = 0.5;  // between votes

}  // namespace

/// COLLECTIVE. First removes commits beyond persistent.keep. If that is not enough, the new commit replaces the oldest
/// kept one.
void FlushStage::publish_with_space(const comm::Group& group, const Upload& upload) {
  const auto try_to_publish = [&]() -> std::optional<Failure> {
    try {
      publish(group, upload);
      return std::nullopt;
    } catch (const Error& error) {
      if (error.code() != ErrorCode::no_space) throw;
      return error.failure();
    }
  };
  auto failure = try_to_publish();
  const std::uint64_t prefix_keep = settings_.persistent.keep;
  for (std::uint64_t kept = prefix_keep; failure && kept > 0 && kept + 2 > prefix_keep; --kept) {
    if (free_prefix_space(group, upload, kept)) failure = try_to_publish();
  }
  if (!failure) return;
  if (prefix_keep != 0) {
    failure->message += compose(
        "; with persistent.keep = {} nothing more can be removed before this flush succeeds, because one complete "
        "checkpoint must stay",
        prefix_keep);
  }
  throw Error(*failure);
}

/// COLLECTIVE. Removes all commits beyond the newest `prefix_keep` recoverable ones, but never the newest complete one,
/// since this flush may fail. Removes nothing if that cannot suffice. Returns whether something was removed.
bool FlushStage::free_prefix_space(const comm::Group& group, const Upload& upload, std::uint64_t prefix_keep) {
  std::vector<persist::TagEntry> candidates;
  const auto not_listed = group.try_on_all_ranks([&] {
    if (!group.is_root()) return;
    candidates = update_history();
    std::erase_if(candidates, [&](const persist::TagEntry& entry) {
      return entry.commit.is_output || !ledger_.excluded().reason(entry.commit.id).empty() ||
             markers_->is_discarded(entry.commit.id);
    });
  });
  if (not_listed) return false;
  NewestRecoverable whole = find_newest_whole(group, *prefix_.reader, candidates);
  if (!whole.commit_id) return false;
  persist::PrefixRetention retention{
      settings_.run.id, prefix_keep, {*whole.commit_id, ledger_.known().parent_id}, std::move(whole.broken)};
  retention.unrecoverable.merge(ledger_.excluded().ids());
  if (prefix_keep < settings_.persistent.keep && !would_free_enough(group, upload, retention)) return false;
  std::size_t removed = 0;
  const double give_up_at = clock_.seconds() + kRemovalBudget_s;
  while (true) {
    const RemovalResult piece = retract_some_commits(group, retention);
    const std::size_t cleared = removal_.run_step(group, kRoomStep_s);
    removed += piece.retracted_count + cleared;
    const bool is_stuck = piece.retracted_count + cleared == 0;
    const bool is_done = is_stuck || (piece.remaining_count == 0 && removal_.is_done());
    if (group.any(is_done || clock_.seconds() >= give_up_at)) break;
  }
  if (removed != 0 && group.is_root()) {
    log_.info(compose("removed old checkpoints from the prefix before the flush of {}, for lack of space there",
                      upload.manifest.entry.commit.tag));
  }
  return removed != 0;
}

/// COLLECTIVE. Whether the removable commits have at least as many bytes as are missing.
bool FlushStage::would_free_enough(const comm::Group& group, const Upload& upload,
                                   const persist::PrefixRetention& retention) {
  bool is_enough = false;
  const auto failure = group.try_decide_on_root(is_enough, [&] {
    const std::uint64_t missing =
        prefix_.writer->missing_bytes(upload.manifest.entry, 0, {});  // containers against containers
    return persist::removable_bytes(*prefix_.reader, *markers_, history_, retention) >= missing;
  });
  return !failure && is_enough;
}

}  // namespace kedge::pipeline

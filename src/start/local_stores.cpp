#include "start/local_stores.hpp"

#include <algorithm>
#include <cerrno>
#include <optional>

#include "base/attempt.hpp"
#include "base/text.hpp"
#include "fs/system_error.hpp"
#include "kedge/error.hpp"
#include "persist/prefix_runs.hpp"
#include "persist/run_record.hpp"
#include "store/sealed_commits.hpp"

namespace kedge::start {
namespace {

RunIds ids_of(const store::NamedStore& one) { return {one.record.run_id, one.record.prefix_id}; }

/// COLLECTIVE. Every text that any rank has, once, in the same order on all.
std::vector<std::string> gather_texts(const comm::Group& group, std::vector<std::string> mine) {
  std::vector<std::string> all;
  while (const auto speaker = group.lowest_rank_with(!mine.empty())) {
    std::string next = mine.empty() ? std::string() : mine.front();
    group.broadcast(next, *speaker);
    std::erase(mine, next);
    all.push_back(std::move(next));
  }
  return all;
}

}  // namespace

LocalStores::LocalStores(const comm::Group& group, const KnownRun& known, const RunSources& sources, bool tolerant)
    : group_(group), known_(known), file_system_(sources.file_system) {
  group_.run_on_all_ranks([&] {
    stores_ = store::find_stores_of_run(file_system_, sources.store_root, sources.location_options, known_.run.name,
                                        tolerant ? store::OnUnreadable::skip : store::OnUnreadable::fail);
  });
}

bool LocalStores::is_by_name(const store::NamedStore& one) const {
  return one.record.prefix == known_.given_prefix ||
         std::ranges::find(one.record.prefix_paths, known_.given_prefix) != one.record.prefix_paths.end();
}

RunIds LocalStores::common_ids(const Id128& run_id) const {
  const auto counts = [&](const store::NamedStore& one) {
    return is_of_this_prefix(one) && (run_id.is_none() || one.record.run_id == run_id) &&
           (one.has_commits || known_.has_any_record());
  };
  const auto first = std::ranges::find_if(stores_, counts);
  const auto speaker = group_.lowest_rank_with(first != stores_.end());
  if (!speaker) return {};
  RunIds ids;
  if (first != stores_.end()) ids = ids_of(*first);
  group_.broadcast(ids, *speaker);
  group_.run_on_all_ranks([&] {
    for (const store::NamedStore& one : stores_) {
      if (counts(one) && !ids_of(one).is_same_as(ids)) throw_ambiguous(one);
    }
  });
  return ids;
}

void LocalStores::throw_ambiguous(const store::NamedStore& one) const {
  refuse(ErrorCode::mismatch,
         compose("stores have commits of several runs '{}' that the prefix has no record of; free those that are not "
                 "wanted with kedge drop, or start over with KEDGE_START=fresh",
                 known_.run.name),
         one.directory);
}

void LocalStores::require_none_left_behind(const Id128& run_id) const {
  group_.run_on_all_ranks([&] {
    for (const store::NamedStore& one : stores_) {
      if (is_of_this_prefix(one) || one.record.run_id != run_id || !one.has_commits) continue;
      const std::string records = persist::records_directory(one.record.prefix, known_.run.name);
      if (find_original_prefix(file_system_, records, run_id) != OriginalPrefix::missing) continue;
      refuse(ErrorCode::mismatch,
             compose("the prefix {} has checkpoints of run '{}' and lost its records; this store has checkpoints of "
                     "the same run, whose prefix was {}. To continue from the store, move the prefix back there; to "
                     "continue from the newest checkpoint on the prefix, run kedge drop on the store; to keep both "
                     "but start over, set KEDGE_START=fresh",
                     known_.prefix, known_.run.name, one.record.prefix),
             one.directory);
    }
  });
}

/// A prefix that knows its run does not answer for another one that the same path led to.
bool LocalStores::is_unknown(const store::NamedStore& one, const RunIds& ids) const {
  return one.has_commits && !ids_of(one).is_same_as(ids) &&
         (is_of_this_prefix(one) || (is_by_name(one) && !known_.is_identified())) &&
         std::ranges::find(known_.given_up_runs, one.record.run_id) == known_.given_up_runs.end();
}

bool LocalStores::has_unknown(const RunIds& ids) const {
  return group_.any(std::ranges::any_of(stores_, [&](const store::NamedStore& one) { return is_unknown(one, ids); }));
}

/// A run that still has its own prefix, to which the same path led before: nobody else may take the store.
bool LocalStores::belongs_to_other_run(const store::NamedStore& one) const {
  if (is_of_this_prefix(one)) return false;
  const std::string records = persist::records_directory(one.record.prefix, known_.run.name);
  return find_original_prefix(file_system_, records, one.record.run_id) != OriginalPrefix::missing;
}

std::string LocalStores::explain_refusal(const store::NamedStore& one, const RunIds& ids) const {
  if (!is_of_this_prefix(one)) {
    const std::string then = one.record.prefix == known_.given_prefix
                                 ? std::string("which was a directory then")
                                 : compose("which {} pointed to then", known_.given_prefix);
    const std::string adopt =
        belongs_to_other_run(one)
            ? std::string()
            : compose(", or, if {} has taken its place, set KEDGE_START=adopt for one start", known_.prefix);
    return compose(
        "this store has commits of run '{}' for the prefix {}, {}; now {} points to {}, which has no record of them. "
        "To continue from them, point it there again{}; to keep them but start over here, set KEDGE_START=fresh; to "
        "free the store, run kedge drop on it",
        known_.run.name, one.record.prefix, then, known_.given_prefix, known_.prefix, adopt);
  }
  if (ids.run_id.is_none()) {
    return compose(
        "the prefix {} has no record of run '{}', which has commits in this store (was the prefix removed, replaced or "
        "moved?). To continue from the store, set KEDGE_START=adopt for one start; to keep it but start over, "
        "KEDGE_START=fresh; to free it, run kedge drop on it",
        known_.prefix, known_.run.name);
  }
  return compose(
      "this store has commits of run '{}' for the prefix {}, which has no record of them but another run of that name "
      "(did it lose its records, or was it replaced?). To continue from the store, set KEDGE_START=adopt for one "
      "start; to continue from what is on the prefix, free the store with kedge drop; to keep both but start over, set "
      "KEDGE_START=fresh",
      known_.run.name, known_.prefix);
}

void LocalStores::require_none_unknown(const RunIds& ids) const {
  group_.run_on_all_ranks([&] {
    const auto one = std::ranges::find_if(stores_, [&](const auto& each) { return is_unknown(each, ids); });
    if (one != stores_.end()) refuse(ErrorCode::mismatch, explain_refusal(*one, ids), one->directory);
  });
}

RunIds LocalStores::adopt_unknown(const RunIds& ids) const {
  const auto first = std::ranges::find_if(stores_, [&](const auto& one) { return is_unknown(one, ids); });
  const auto speaker = group_.lowest_rank_with(first != stores_.end());
  RunIds adopted;
  if (first != stores_.end()) adopted = ids_of(*first);
  group_.broadcast(adopted, speaker.value_or(0));
  group_.run_on_all_ranks([&] {
    for (const store::NamedStore& one : stores_) {
      const bool is_own = one.has_commits && !ids.run_id.is_none() && ids_of(one).is_same_as(ids);
      if (is_own || (is_unknown(one, ids) && !ids_of(one).is_same_as(adopted))) throw_ambiguous(one);
      if (is_unknown(one, ids) && belongs_to_other_run(one))
        refuse(ErrorCode::mismatch, explain_refusal(one, ids), one.directory);
    }
  });
  return adopted;
}

std::string LocalStores::describe_left_behind() const {
  const RunIds before{known_.run.id, known_.prefix_id};
  const auto left = std::ranges::find_if(stores_, [&](const auto& one) { return is_unknown(one, before); });
  std::optional<std::string> mine;
  if (left != stores_.end()) {
    std::vector<CommitHead> commits;
    (void)attempt([&] { commits = store::sealed_commits(file_system_, left->directory, left->record.run_id); });
    const std::string newest = commits.empty() ? ""
                                               : compose(" (the newest is {}, generation {})", commits.front().tag,
                                                         commits.front().generation);
    const std::string adopt = belongs_to_other_run(*left)
                                  ? std::string()
                                  : compose(
                                        "; to continue from it instead, end this job before its first checkpoint, "
                                        "remove {} and start with KEDGE_START=adopt",
                                        shell_word(persist::records_directory(known_.prefix, known_.run.name)));
    mine = compose(
        "a node-local store has commits of an earlier run '{}'{} that the prefix has no record of; it stays and is not "
        "used. To free it, on each node: kedge drop {}{}",
        known_.run.name, newest, shell_word(left->directory), adopt);
  }
  return group_.text_of_lowest_rank(mine);
}

std::vector<Id128> LocalStores::runs_with_commits() const {
  std::vector<std::string> mine;
  for (const store::NamedStore& one : stores_) {
    if (one.has_commits && (is_of_this_prefix(one) || is_by_name(one))) mine.push_back(to_string(one.record.run_id));
  }
  std::vector<Id128> runs;
  for (const std::string& id : gather_texts(group_, std::move(mine))) runs.push_back(parse_id(id).value_or(Id128{}));
  return runs;
}

std::vector<std::string> LocalStores::former_prefixes(const RunIds& ids) const {
  std::vector<std::string> mine;
  for (const store::NamedStore& one : stores_) {
    if (ids_of(one).is_same_as(ids) && !is_of_this_prefix(one)) mine.push_back(one.record.prefix);
  }
  return gather_texts(group_, std::move(mine));
}

OriginalPrefix find_original_prefix(fs::FileSystem& file_system, const std::string& directory, const Id128& run_id) {
  auto original = OriginalPrefix::missing;
  const auto failure = attempt([&] {
    const auto found = persist::read_run_record(file_system, directory);
    auto record = found.record;
    if (!record && file_system.status(directory)) record = persist::read_record_of_newest_start(file_system, directory);
    if (!record && found.unreadable) throw Error(*found.unreadable);
    if (record ? record->run_id == run_id : found.is_damaged) original = OriginalPrefix::exists;
  });
  if (!failure) return original;
  if (!fs::is_access_error(failure->system_errno)) throw Error(*failure);
  return failure->system_errno == ENOTDIR ? OriginalPrefix::missing : OriginalPrefix::inaccessible;
}

}  // namespace kedge::start

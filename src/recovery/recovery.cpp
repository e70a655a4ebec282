#include "recovery/recovery.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "base/attempt.hpp"
#include "base/suggest.hpp"
#include "base/text.hpp"
#include "commits/commit_selection.hpp"
#include "fs/file_system.hpp"

namespace kedge::recovery {
namespace {

/// Tags of the recoverable commits, newest first.
std::vector<std::string> recoverable_tags(const Survey& survey) {
  std::vector<std::string> tags;
  for (const Candidate& candidate : survey.candidates) {
    if (candidate.recoverable) tags.push_back(candidate.commit.tag);
  }
  return tags;
}

}  // namespace

Recovery::Recovery(comm::Group group, Storage storage, RecoveryPolicy policy, Log log)
    : group_(std::move(group)),
      storage_(std::move(storage)),
      policy_(policy),
      log_(std::move(log)),
      survey_(group_, storage_, log_) {}

void Recovery::survey_only() {
  survey_.look();
  do {
    (void)survey_.survey(nullptr);
  } while (policy_.verify == Verify::all && !verify_needed_files(nullptr, {}));
}

std::optional<Opened> Recovery::open(const Selection& selection, Newer newer, Reading reading) {
  warned_.clear();
  // After a failed recovery, only complete verification shows what must be rebuilt instead.
  Depth depth = policy_.verify == Verify::headers ? Depth::headers
                : policy_.defers_reads            ? Depth::what_is_opened
                                                  : Depth::what_is_used;
  if (reading == Reading::all_in_open || !failed_once_.empty()) depth = Depth::all_that_counts;
  if (newer == Newer::discard) reading = Reading::in_open;
  for (;; depth = Depth::all_that_counts) {
    survey_.look();
    const Plan plan = make_plan(selection, depth, reading);
    if (group_.is_root()) log_skipped(plan);
    require_recoverable(plan.choice, selection);
    refuse_unknown_bound(plan, selection);
    const Candidate* chosen = plan.chosen();
    if (chosen == nullptr) {
      if (group_.is_root()) log_no_match(plan, selection);
      return std::nullopt;
    }
    std::optional<Recovered> mine = try_to_execute_orders(plan, *chosen, depth);
    if (!mine) continue;  // plan again with the new findings
    if (newer == Newer::discard) discard_newer(plan.survey, *chosen);
    return opened(plan, std::move(*mine), depth);
  }
}

/// COLLECTIVE. Surveys, selects and plans, and repeats this with the differences that verification finds; each turn
/// leaves less to read.
Recovery::Plan Recovery::make_plan(const Selection& selection, Depth depth, Reading reading) {
  while (true) {
    Plan plan;
    plan.survey = survey_.survey(&selection);
    plan.choice = choose(plan.survey, selection, storage_.ledger.known().commits_exist);
    DeferredReads read_later;
    if (const Candidate* chosen = plan.chosen()) {
      plan.orders = plan_orders(group_, plan.survey.homes, *chosen, [&](LogicalRank logical_rank) {
        return storage_.store.ranks.responsible_process(logical_rank);
      });
      if (depth != Depth::headers && depth != Depth::all_that_counts) {
        read_later = plan_deferred_reads(group_, storage_.store, *chosen, plan.orders, reading == Reading::in_load);
        plan.are_containers_unread = read_later.containers;
      }
      if (depth == Depth::what_is_opened) {
        if (verify_selected_files(*chosen, plan.orders, read_later)) return plan;
        continue;
      }
    }
    if (depth == Depth::headers || verify_needed_files(plan.chosen(), read_later)) return plan;
  }
}

/// COLLECTIVE. Reads all selected files, but parity only of sets that rebuild something. False if another survey is
/// needed.
bool Recovery::verify_selected_files(const Candidate& chosen, const Orders& orders, DeferredReads later) {
  std::vector<store::FileKey> unused = survey_.protections(chosen.commit.id);
  for (const SetOrder& order : orders.sets) {
    if (order.rebuild) std::erase(unused, order.key());
  }
  later.anyone_s.insert(later.anyone_s.end(), unused.begin(), unused.end());
  bool as_found = true;
  group_.run_on_all_ranks([&] { as_found = survey_.verify(chosen.commit.id, {later.files, later.anyone_s}); });
  return group_.all(as_found);
}

/// COLLECTIVE. Reads all files that matter and were not read yet. False if some rank found a difference, so that
/// another survey is needed. `later` has files of the selected commit.
bool Recovery::verify_needed_files(const Candidate* chosen, const DeferredReads& later) {
  std::set<Id128> counts;
  if (chosen != nullptr) counts.insert(chosen->commit.id);
  for (const Id128& commit_id : storage_.ledger.known().ids_to_keep(policy_.keep)) counts.insert(commit_id);
  bool as_found = true;
  group_.run_on_all_ranks([&] {
    for (const Id128& commit_id : counts) {
      const bool is_chosen = chosen != nullptr && commit_id == chosen->commit.id;
      const auto skipped = is_chosen ? store::SkippedFiles{later.files, later.anyone_s} : store::SkippedFiles{};
      if (!survey_.verify(commit_id, skipped)) as_found = false;
    }
  });
  return group_.all(as_found);
}

/// Logs each skipped commit once, although surveys are repeated.
void Recovery::log_skipped(const Plan& plan) {
  const Survey& survey = plan.survey;
  bool is_logged = survey.unreadable.empty();
  for (const std::size_t index : plan.choice.skipped) {
    const Candidate& candidate = survey.candidates[index];
    warn_once(
        compose("skipped {} (generation {}): {}", candidate.commit.tag, candidate.commit.generation, candidate.reason));
    is_logged = is_logged || candidate.reason.find(survey.unreadable) != std::string::npos;
  }
  // Its tag is unknown, so it may have been the newest.
  if (!is_logged) warn_once("skipped an unreadable container: " + survey.unreadable);
}

void Recovery::warn_once(const std::string& line) {
  if (warned_.insert(line).second) log_.warning(line);
}

/// If open returns nothing, applications usually start from zero, so the log says what exists.
void Recovery::log_no_match(const Plan& plan, const Selection& selection) const {
  const std::vector<std::string> tags = recoverable_tags(plan.survey);
  if (tags.empty()) return;
  const auto* tag = std::get_if<Tag>(&selection);
  const auto meant = tag == nullptr ? std::nullopt : nearest_name(*tag, tags);
  log_.warning(compose("no checkpoint matches '{}', so nothing was opened; the newest is {}{}",
                       commits::to_string(selection), tags.front(),
                       meant && *meant != tags.front() ? compose("; did you mean {}?", *meant) : ""));
}

/// Throws if Before names an unknown commit: returning nothing would make the program start from zero.
void Recovery::refuse_unknown_bound(const Plan& plan, const Selection& selection) {
  if (!plan.choice.is_bound_unknown) return;
  const Tag& tag = std::get<Before>(selection).tag;
  const std::vector<std::string> tags = recoverable_tags(plan.survey);
  const auto meant = nearest_name(tag, tags);
  throw Error(ErrorCode::not_found,
              compose("no commit '{}' is known, so older ones cannot be determined{}{}; kedge ls lists the "
                      "checkpoints, and open(latest) opens the newest",
                      tag, tags.empty() ? "" : compose("; the newest is {}", tags.front()),
                      meant && *meant != tags.front() ? compose("; did you mean {}?", *meant) : ""));
}

void Recovery::require_recoverable(const Choice& choice, const Selection& selection) {
  if (choice.lost.empty()) return;
  if (std::holds_alternative<Latest>(selection))
    storage_.ledger.mark_lost();  // one lost tag does not make the run lost
  throw Error(
      ErrorCode::unrecoverable,
      compose("run '{}' has commits, but {} be recovered: {}. {}to start over, set KEDGE_START=fresh for one start",
              storage_.run.name,
              std::holds_alternative<Latest>(selection) ? "none of them can"
                                                        : compose("'{}' cannot", commits::to_string(selection)),
              choice.lost,
              choice.other_ranks && storage_.other_ranks == OtherRanks::refuse
                  ? "Start it with as many ranks as saved it, or, "
                  : "Bring back the nodes that held it, or, "));
}

/// COLLECTIVE. Returns nothing if another survey is needed: a node may be lost, or data damaged, after the survey, and
/// a rebuild verifies its inputs only now. Throws no_space, timeout and rank_failed, which other commits would meet,
/// too.
std::optional<Recovered> Recovery::try_to_execute_orders(const Plan& plan, const Candidate& chosen, Depth depth) {
  try {
    const RecoverySettings settings{policy_.durable, policy_.pieces, chosen.commit, &storage_.prefix_storage,
                                    chosen.directory};
    return execute_orders(group_, storage_.store, plan.orders, settings);
  } catch (const Error& error) {
    if (comm::ends_communication(error.code()) || error.code() == ErrorCode::no_space) throw;
    if (group_.is_root()) {
      log_.warning(
          compose("{} (generation {}) could not be recovered: {}; reading every byte of it before the next attempt",
                  chosen.commit.tag, chosen.commit.generation, to_string(error.failure())));
    }
    require_prefix(chosen);
    if (depth != Depth::all_that_counts) return std::nullopt;
    const bool first_time = failed_once_.insert(chosen.commit.id).second;
    if (!first_time)
      storage_.ledger.exclude(chosen.commit.id, "it could not be recovered: " + to_string(error.failure()));
    return std::nullopt;
  }
}

/// COLLECTIVE. Throws io if a rank does not see what rank 0 saw on the prefix: opening an older commit would be wrong.
void Recovery::require_prefix(const Candidate& chosen) const {
  if (chosen.directory.empty()) return;
  group_.run_on_all_ranks([&] {
    if (storage_.prefix_storage.is_published(chosen.directory)) return;
    throw Error(
        Failure{ErrorCode::io,
                "this rank does not see the manifest that rank 0 sees; check the mount of the prefix on its node", -1,
                fs::join(storage_.prefix_storage.location(), chosen.directory), 0});
  });
}

void Recovery::mark_damaged(const CommitHead& commit, const Failure& damage) {
  if (!failed_once_.insert(commit.id).second) {
    storage_.ledger.exclude_damaged(commit.id, "it was found damaged while it was loaded: " + to_string(damage));
    return;
  }
  storage_.ledger.drop_damaged(commit.id);
  if (!group_.is_root()) return;
  // What lies on the prefix is read again by load_all alone, since nothing is fetched.
  const bool stays = stays_as_it_lies(commit.world_size, group_);
  log_.warning(
      compose("{} (generation {}) was found damaged while it was loaded: {}; the next open reads every byte{} "
              "of it, and rebuilds it or takes an older one{}",
              commit.tag, commit.generation, to_string(damage), stays ? " that the stores have" : "",
              stays ? "; if it is damaged on the prefix, the open after that takes an older one" : ""));
}

/// COLLECTIVE. Records the newer commits as discarded before anything else. Outputs are not discarded: no restart uses
/// them.
void Recovery::discard_newer(const Survey& survey, const Candidate& chosen) {
  const std::uint64_t generation = chosen.commit.generation;
  const auto is_left_behind = [&](const CommitHead& commit) {
    return !commit.is_output && commit.generation > generation;
  };
  group_.run_on_all_ranks([&] {
    if (storage_.markers == nullptr) return;
    for (const Candidate& candidate : survey.candidates) {
      if (is_left_behind(candidate.commit)) storage_.markers->mark_discarded(candidate.commit.id);
    }
    for (const persist::TagEntry& entry : storage_.prefix_storage.list_commits().entries) {
      if (entry.commit.run_id == storage_.run.id && is_left_behind(entry.commit))
        storage_.markers->mark_discarded(entry.commit.id);
    }
  });
  storage_.ledger.discard_newer(generation);
}

/// COLLECTIVE. On rank 0, ascending: the chosen commit's ranks whose containers no store has. Each home knows its own.
std::vector<std::uint32_t> Recovery::ranks_in_no_store(const Plan& plan) const {
  const CommitHead& commit = plan.chosen()->commit;
  const auto& homed = plan.survey.homes.ranks;
  std::vector<comm::Addressed<std::uint32_t>> to_root;
  for (std::uint32_t rank = group_.logical_rank().value; rank < commit.world_size; rank += group_.world_size()) {
    const auto found = homed.find({commit.generation, commit.id, commit.world_size, rank});
    if (found == homed.end() || found->second.holder == kNoProcess) to_root.push_back({0, rank});
  }
  std::vector<std::uint32_t> ranks;
  for (const auto& [home, rank] : group_.exchange(to_root)) ranks.push_back(rank);
  std::ranges::sort(ranks);
  return ranks;
}

/// COLLECTIVE. What a job has of a commit that another number of ranks saved.
Opened Recovery::opened_as_it_lies(const Plan& plan, Depth depth) const {
  const Candidate& chosen = *plan.chosen();
  Opened opened;
  opened.commit = chosen.commit;
  opened.persistent = chosen.persistent;
  opened.total_bytes = chosen.total_bytes;
  opened.totals.rebuilt = chosen.rebuilt;
  opened.totals.on_prefix = chosen.commit.world_size - chosen.held - chosen.rebuilt;
  opened.unread = depth == Depth::what_is_opened;
  opened.are_containers_unread = plan.are_containers_unread;
  opened.held = plan.orders.held;
  opened.directory = chosen.directory;
  // Nobody asks for stores where nothing of it was.
  if (chosen.held != 0 && chosen.held < chosen.commit.world_size) opened.not_found = ranks_in_no_store(plan);
  return opened;
}

std::vector<Holding> Recovery::open_holdings(const Opened& opened, unsigned copy_threads) const {
  std::vector<Holding> holdings;
  for (const HeldRank& held : opened.held) {
    holdings.push_back(
        held.in_store
            ? Holding::in_store(storage_.store.files, opened.commit.id, held.logical_rank, copy_threads)
            : Holding::on_prefix(storage_.prefix_storage, opened.directory, opened.commit, held.logical_rank));
  }
  return holdings;
}

Opened Recovery::opened(const Plan& plan, Recovered mine, Depth depth) const {
  const Candidate& chosen = *plan.chosen();
  if (stays_as_it_lies(chosen.commit.world_size, group_)) return opened_as_it_lies(plan, depth);
  const auto is = [&](RecoverySource source) -> std::uint64_t { return mine.source == source ? 1 : 0; };
  const auto sums = group_.sum(std::array{is(RecoverySource::moved), is(RecoverySource::rebuilt),
                                          is(RecoverySource::fetched), mine.container_bytes});
  return {chosen.commit,
          chosen.persistent,
          chosen.total_bytes,
          std::move(mine),
          {sums[0], sums[1], sums[2], sums[3]},
          depth == Depth::what_is_opened,
          plan.are_containers_unread,
          {},
          {},
          {}};
}

}  // namespace kedge::recovery

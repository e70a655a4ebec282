#include "recovery/survey.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/attempt.hpp"
#include "base/text.hpp"
#include "commits/head_check.hpp"
#include "recovery/found_tag.hpp"
#include "recovery/heads.hpp"
#include "recovery/prefix_survey.hpp"
#include "recovery/stranded_outputs.hpp"

namespace kedge::recovery {
namespace {

/// Text about the first field in which a header contradicts the majority.
std::string difference(const CommitHead& header, const CommitHead& majority) {
  const auto differs = [](std::string_view field, const auto& here, const auto& there) {
    return compose(" ({} {}, the others {})", field, here, there);
  };
  if (header.tag != majority.tag) return differs("tag", header.tag, majority.tag);
  if (header.generation != majority.generation) return differs("generation", header.generation, majority.generation);
  if (header.incarnation != majority.incarnation)
    return differs("incarnation", header.incarnation, majority.incarnation);
  if (header.world_size != majority.world_size) return differs("world size", header.world_size, majority.world_size);
  if (header.time_ns != majority.time_ns) return differs("time", header.time_ns, majority.time_ns);
  if (header.is_output != majority.is_output) return differs("output", header.is_output, majority.is_output);
  return differs("parent", to_string(header.parent_id), to_string(majority.parent_id));
}

/// Files of the stores, sorted into those that name a commit of this run and the rest.
struct StoreFinding {
  LocalFiles holdings;
  std::string unreadable;
  std::vector<Id128> of_other_runs;  ///< commit ids
  std::uint64_t highest_generation = 0;
};

StoreFinding classify(const std::vector<store::ScannedFile>& files, const Id128& run_id) {
  StoreFinding found;
  for (const store::ScannedFile& held : files) {
    found.highest_generation = std::max(found.highest_generation, held.generation());
    if (held.kind == store::FileKind::manifest) continue;  // written again when needed
    if (held.kind != store::FileKind::container) {
      // Parity is optional, so damaged parity or another run's counts as missing.
      if (held.intact && held.set_descriptor) found.holdings.set_files.push_back(*held.set_descriptor);
      if (held.intact && held.copied_commit) found.holdings.copied.push_back(*held.copied_commit);
      continue;
    }
    const bool of_this_run = held.superblock && held.superblock->commit.run_id == run_id;
    if (of_this_run && held.superblock->logical_rank == held.logical_rank) {
      found.holdings.containers.push_back(
          {held.superblock->commit, held.logical_rank, held.size_bytes, held.intact, held.damage});
      continue;
    }
    if (held.superblock && !of_this_run) found.of_other_runs.push_back(held.superblock->commit.id);
    if (!held.damage.empty() && found.unreadable.empty()) found.unreadable = held.damage;
  }
  return found;
}

/// A survey in progress.
class SurveyDraft {
 public:
  SurveyDraft(const comm::Group& group, const Storage& storage) : group_(group), storage_(storage) {}

  void add_stores(const std::vector<store::ScannedFile>& files) {
    in_stores_ = classify(files, storage_.run.id);
    in_stores_.holdings.domain = storage_.domain;
    Agreement agreed = agree_on_commits(group_, in_stores_.holdings,
                                        {storage_.store.directory.path(), in_stores_.unreadable}, storage_.other_ranks);
    survey_ = {group_.world_size(), std::move(agreed.candidates), std::move(agreed.unreadable), std::move(agreed.homes),
               storage_.is_drained};
  }

  /// COLLECTIVE. Returns the failure if the prefix could not be read; no candidate was added then.
  [[nodiscard]] std::optional<Failure> add_prefix(const Selection& selection) {
    PrefixSurvey found;
    std::vector<std::byte> tags;
    auto failure = group_.try_on_all_ranks([&] {
      if (storage_.markers == nullptr) return;
      found = survey_prefix(storage_.prefix_storage, *storage_.markers,
                            {storage_.run.id, group_.world_size(), storage_.other_ranks, storage_.trust,
                             survey_.candidates, selection, storage_.ledger});
      tags = pack(found.tags);
    });
    if (failure) return failure;
    warnings_ = std::move(found.warnings);
    group_.broadcast(found.highest_generation);
    group_.broadcast(found.commits_exist);
    highest_on_prefix_ = found.highest_generation;
    commits_on_prefix_ = found.commits_exist;
    if (auto unread = group_.vote(found.failure)) return unread;
    group_.broadcast(found.persistent);
    group_.broadcast(tags);
    for (std::size_t i = 0; i < survey_.candidates.size(); ++i) {
      survey_.candidates[i].persistent = found.persistent[i] != 0;
    }
    for (const FoundTag& tag : unpack(tags)) add(tag);
    return std::nullopt;
  }

  /// COLLECTIVE. Marks commits that the run's record lists as discarded, or that are excluded, as not recoverable.
  /// Returns the failure if the record could not be read, since any commit may then be discarded.
  [[nodiscard]] std::optional<Failure> exclude_discarded() {
    std::vector<std::byte> discarded(survey_.candidates.size());
    auto failure = group_.try_on_all_ranks([&] {
      if (storage_.markers == nullptr) return;
      for (std::size_t i = 0; i < discarded.size(); ++i) {
        discarded[i] = std::byte{storage_.markers->is_discarded(survey_.candidates[i].commit.id)};
      }
    });
    if (failure) std::ranges::fill(discarded, std::byte{0});
    else group_.broadcast(discarded);
    for (std::size_t i = 0; i < discarded.size(); ++i) {
      Candidate& candidate = survey_.candidates[i];
      candidate.discarded = discarded[i] != std::byte{0};
      std::string why =
          candidate.discarded ? std::string(kDiscarded) : storage_.ledger.excluded().reason(candidate.commit.id);
      if (why.empty()) continue;
      candidate.reason = std::move(why);
      candidate.recoverable = false;
    }
    may_be_discarded_ = failure.has_value();
    return failure;
  }

  /// COLLECTIVE. Returns the survey's result for the ledger.
  [[nodiscard]] commits::SurveyResult surveyed() const {
    commits::SurveyResult result;
    result.highest_generation = highest_generation();
    result.commits_exist = storage_.ledger.known().commits_exist || commits_on_prefix_;
    bool has_checkpoint = false;  // an output replaces none
    for (const Candidate& candidate : survey_.candidates) {
      // A discarded commit must not displace the commit for which it was discarded.
      if (may_be_discarded_) result.undecided.insert(candidate.commit.id);
      if (is_output_of_others(candidate, survey_.processes)) {
        result.outputs_of_others.insert(result.outputs_of_others.begin(), candidate.commit);
        continue;
      }
      const bool is_here = candidate.recoverable && candidate.in_stores;
      // Commits older than a recoverable one are superseded like others.
      if (candidate.commit.world_size != survey_.processes && !has_checkpoint && !is_here) {
        result.undecided.insert(candidate.commit.id);
      }
      if (!is_here) continue;
      result.entries.push_back(
          {candidate.commit, candidate.is_protected ? Level::protected_ : Level::local, {}, candidate.persistent});
      has_checkpoint = has_checkpoint || !candidate.commit.is_output;
    }
    if (has_checkpoint) return result;
    result.undecided.insert(in_stores_.of_other_runs.begin(), in_stores_.of_other_runs.end());
    // A lost node may come back. Files of an interrupted first checkpoint are useless.
    if (result.commits_exist) {
      for (const Candidate& candidate : survey_.candidates) result.undecided.insert(candidate.commit.id);
    }
    return result;
  }

  /// Rank 0's warnings about the prefix.
  [[nodiscard]] const std::vector<std::string>& warnings() const noexcept { return warnings_; }
  [[nodiscard]] bool has_commits_on_prefix() const noexcept { return commits_on_prefix_; }
  /// COLLECTIVE. The highest generation seen, but at least this start's base: each start counts from its own 1,000,000,
  /// which exceeds the generations of all earlier starts even if the stores that had them are lost.
  [[nodiscard]] std::uint64_t highest_generation() const {
    const std::uint64_t seen =
        std::max({in_stores_.highest_generation, highest_on_prefix_, storage_.ledger.generations().highest()});
    return std::max(group_.max(seen), storage_.run.incarnation * commits::kGenerationsPerIncarnation);
  }
  [[nodiscard]] Survey finish() && { return std::move(survey_); }

 private:
  /// Adds a tag; all ranks add the same.
  void add(const FoundTag& tag) {
    auto& candidates = survey_.candidates;
    auto found = std::ranges::find(candidates, tag.commit.id, [](const Candidate& one) { return one.commit.id; });
    if (found == candidates.end()) {
      Candidate candidate;
      candidate.commit = tag.commit;
      candidate.persistent = true;
      const auto is_older = [&](const Candidate& other) { return is_newer(candidate.commit, other.commit); };
      found = candidates.insert(std::ranges::find_if(candidates, is_older), candidate);
    }
    if (tag.is_usable() && found->commit != tag.commit) {
      found->persistent = false;
      if (!found->recoverable) found->reason += "; the manifest on the prefix contradicts the stores";
      return;
    }
    if (tag.is_usable()) {
      found->directory = tag.directory;
      found->recoverable = true;
      found->total_bytes = tag.total_bytes;
      return;
    }
    found->persistent = false;  // overrides the catalog
    if (!found->recoverable && found->reason != tag.problem) {
      found->reason += (found->reason.empty() ? "" : "; ") + tag.problem;
    }
  }

  const comm::Group& group_;
  const Storage& storage_;
  StoreFinding in_stores_;
  Survey survey_;
  std::vector<std::string> warnings_;
  std::uint64_t highest_on_prefix_ = 0;
  bool commits_on_prefix_ = false;
  bool may_be_discarded_ = false;
};

}  // namespace

void StorageSurvey::look() {
  group_.run_on_all_ranks([&] { files_ = storage_.store.files.scan(storage_.run.id, Verify::headers); });
  verified_.clear();
  reject_contradicted();
}

/// COLLECTIVE. A container whose header contradicts the others of its commit counts as damaged.
void StorageSurvey::reject_contradicted() {
  std::vector<CommitHead> heads;
  std::vector<store::ScannedFile*> files;
  for (store::ScannedFile& held : files_) {
    const bool is_container = held.kind == store::FileKind::container && held.intact && held.superblock;
    if (!is_container || held.superblock->commit.run_id != storage_.run.id) continue;
    heads.push_back(held.superblock->commit);
    files.push_back(&held);
  }
  for (const auto& [index, majority] : find_contradictions(group_, heads)) {
    store::ScannedFile& held = *files[index];
    storage_.store.files.hide_until_scan(held.path);
    held.intact = false;
    held.damage = compose("{}: its header contradicts the other containers of the commit{}", held.path,
                          majority ? difference(heads[index], *majority) : "");
    if (majority) held.superblock->commit = *majority;
    else held.superblock.reset();
  }
}

Survey StorageSurvey::survey(const Selection* selection) {
  SurveyDraft draft(group_, storage_);
  draft.add_stores(files_);
  // The next commit must be newer than all generations seen, even if nothing can be opened.
  const auto throw_if_opening = [&](const std::optional<Failure>& failure) {
    if (selection == nullptr || !failure) return;
    storage_.ledger.generations().raise_to(draft.highest_generation());
    if (draft.has_commits_on_prefix()) storage_.ledger.set_commits_exist();
    throw Error(*failure);
  };
  const auto unread = draft.add_prefix(selection != nullptr ? *selection : Selection(latest));
  for (const std::string& warning : draft.warnings()) {
    if (warned_.insert(warning).second) log_.warning(warning);
  }
  throw_if_opening(unread);
  const auto no_record = draft.exclude_discarded();
  throw_if_opening(no_record);
  if (const auto& failure = unread ? unread : no_record; failure && group_.is_root()) {
    log_.warning("the prefix could not be read; the checkpoint continues: " + to_string(*failure));
  }
  const std::vector<CommitHead> owed_before = storage_.ledger.known().outputs_to_flush();
  storage_.ledger.apply_survey(draft.surveyed());
  Survey survey = std::move(draft).finish();
  if (!unread && group_.is_root()) warn_of_stranded(survey, owed_before);
  return survey;
}

void StorageSurvey::warn_of_stranded(const Survey& survey, const std::vector<CommitHead>& owed_before) {
  const StrandedOutputs stranded = stranded_outputs(survey, owed_before);
  std::vector<std::string> lines = describe_lost_outputs(stranded);
  if (!storage_.is_drained) {
    const auto waiting =
        describe_waiting_outputs(stranded, {storage_.prefix_storage.location(), storage_.run.name, survey.processes});
    lines.insert(lines.end(), waiting.begin(), waiting.end());
  }
  for (const std::string& line : lines) {
    if (warned_.insert(line).second) log_.warning(line);
  }
}

std::vector<store::FileKey> StorageSurvey::protections(const Id128& commit_id) const {
  std::set<store::FileKey> keys;
  for (const store::ScannedFile& held : files_) {
    if (held.set_descriptor && held.set_descriptor->commit_id == commit_id)
      keys.insert({commit_id, held.set_descriptor->protection_id});
  }
  return {keys.begin(), keys.end()};
}

bool StorageSurvey::verify(const Id128& commit_id, const store::SkippedFiles& skipped_files) {
  if (verified_.contains(commit_id)) return true;
  bool as_found = true;
  for (store::ScannedFile& held : storage_.store.files.verify(storage_.run.id, commit_id, skipped_files)) {
    const auto found = std::ranges::find(files_, held.path, &store::ScannedFile::path);
    as_found = as_found && found != files_.end() && held.intact && held.key() == found->key();
    if (found != files_.end()) *found = std::move(held);
    else files_.push_back(std::move(held));
  }
  // With skipped files the verification is incomplete: the next plan may need another set.
  if (skipped_files.own.empty() && skipped_files.all.empty()) verified_.insert(commit_id);
  return as_found;
}

}  // namespace kedge::recovery

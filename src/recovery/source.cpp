#include "recovery/source.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <optional>
#include <thread>
#include <utility>

#include "base/text.hpp"
#include "commits/commit_selection.hpp"
#include "persist/tag_directory.hpp"
#include "recovery/agreement.hpp"

namespace kedge::recovery {
namespace {

using GivenUp = std::map<Id128, std::string>;

// How long listing is repeated if a listed commit vanishes. It limits work rather than a wait, so time in which the job
// was suspended may count.
constexpr std::chrono::seconds kListAgain{10};
constexpr std::chrono::milliseconds kBetweenLists{10};
constexpr int kEmptyLists = 3;  // if nothing was ever flushed, waiting would be pointless

/// Rank 0's survey of a Source.
class SourceSurvey {
 public:
  SourceSurvey(persist::PrefixReader& prefix_storage, const Source& source, const GivenUp& given_up,
               std::uint32_t world_size, OtherRanks other_ranks, const Log& log, std::set<std::string>& logged)
      : prefix_storage_(prefix_storage),
        source_(source),
        given_up_(given_up),
        world_size_(world_size),
        other_ranks_(other_ranks),
        log_(log),
        logged_(logged) {}

  /// The Source's newest commits, newest first, down to the first with a valid manifest. Nothing if the list is
  /// outdated (another job flushes and removes commits meanwhile) and `may_list_again`. A list with only unreadable
  /// entries counts as outdated, unless it `may_be_empty`.
  [[nodiscard]] std::optional<std::vector<FoundTag>> run(bool may_list_again, bool may_be_empty) const {
    std::vector<FoundTag> tags;
    const persist::TagList list = prefix_storage_.list_commits();
    for (const persist::TagEntry& entry : list.entries) {
      if (!source_.run.empty() && entry.run != source_.run) continue;
      if (!commits::matches_tag(source_.tag, entry.commit.tag, entry.commit.is_output)) continue;
      const FoundTag one = to_found_tag(entry);
      if (!one.is_usable() && may_list_again && !prefix_storage_.is_published(entry.directory)) return std::nullopt;
      if (one.is_usable() || tags.size() < kUnusableListedMax) tags.push_back(one);
      if (one.is_usable()) break;
    }
    if (tags.empty() && !may_be_empty && is_in_progress(list.unusable_tags)) return std::nullopt;
    const std::string unreadable = log_unusable(list.unusable_tags);
    if (!tags.empty()) return tags;
    if (!unreadable.empty()) {
      throw Error(Failure{ErrorCode::unrecoverable,
                          compose("'{}' of {} cannot be recovered: {}", source_.tag, source_.prefix, unreadable), -1,
                          prefix_storage_.location(), 0});
    }
    throw Error(
        Failure{ErrorCode::not_found,
                compose("there is no checkpoint{}{} here; kedge ls {} lists the checkpoints",
                        commits::is_latest(source_.tag) ? "" : compose(" '{}'", source_.tag),
                        source_.run.empty() ? "" : compose(" of run '{}'", source_.run), shell_word(source_.prefix)),
                -1, prefix_storage_.location(), 0});
  }

 private:
  /// By the name of its directory, which does not tell outputs from checkpoints.
  [[nodiscard]] bool is_named(const std::optional<persist::TagDirectory>& name) const {
    return name && commits::matches_tag(source_.tag, name->tag, false);
  }

  /// A name without a manifest may have had one a moment ago, and the newer one was not listed yet.
  [[nodiscard]] bool is_in_progress(const std::vector<persist::UnusableTag>& unusable) const {
    return std::ranges::any_of(unusable, [&](const persist::UnusableTag& one) {
      return !one.has_manifest && is_named(persist::parse_tag_directory_name(one.directory));
    });
  }

  /// Their run is no longer known, so they may be meant. Returns the damage in words.
  [[nodiscard]] std::string log_unusable(const std::vector<persist::UnusableTag>& unusable) const {
    std::string damaged;
    for (const persist::UnusableTag& one : unusable) {
      if (!one.has_manifest || !is_named(persist::parse_tag_directory_name(one.directory))) continue;
      const std::string line = compose("{}: {}", one.directory, one.reason);
      if (logged_.insert(line).second) log_.warning("skipped " + line);
      damaged += compose("{}{}", damaged.empty() ? "" : "; ", line);
    }
    return damaged;
  }

  [[nodiscard]] FoundTag to_found_tag(const persist::TagEntry& entry) const {
    if (std::string why = exclusion_reason(entry.commit); !why.empty()) return found_tag(entry, std::move(why));
    FoundTag found = check_tag_manifest(prefix_storage_, entry);
    if (found.is_usable()) found.problem = exclusion_reason(found.commit);  // the manifest may contradict the list
    return found;
  }

  /// Empty if the commit may be opened, judging by its head.
  [[nodiscard]] std::string exclusion_reason(const CommitHead& commit) const {
    if (const auto why = given_up_.find(commit.id); why != given_up_.end()) return why->second;
    return other_world_size(commit.world_size, world_size_, other_ranks_);
  }

  persist::PrefixReader& prefix_storage_;
  const Source& source_;
  const GivenUp& given_up_;
  std::uint32_t world_size_;
  OtherRanks other_ranks_;
  const Log& log_;
  std::set<std::string>& logged_;  ///< by earlier surveys of this open
};

}  // namespace

/// COLLECTIVE. The Source's tags, equal on all ranks.
std::vector<FoundTag> SourceRecovery::look(const Source& source, const GivenUp& given_up, std::set<std::string>& logged,
                                           Deadline list_again_until) const {
  for (int lists = 0;; ++lists) {
    bool is_outdated = false;
    const std::vector<std::byte> found = group_.decide_on_root([&] {
      if (lists > 0) std::this_thread::sleep_for(kBetweenLists);
      const auto prefix_storage = open_prefix_storage_(source.prefix);
      const SourceSurvey look(*prefix_storage, source, given_up, group_.world_size(), other_ranks_, log_, logged);
      const auto tags = look.run(!list_again_until.passed(), lists >= kEmptyLists);
      is_outdated = !tags.has_value();
      return pack(tags.value_or(std::vector<FoundTag>{}));
    });
    group_.broadcast(is_outdated);
    if (!is_outdated) return unpack(found);
  }
}

/// COLLECTIVE. Whether the listed commit was removed since, so that there may be a newer one.
bool SourceRecovery::is_gone(const Source& source, const FoundTag& tag) const {
  bool is_gone = false;
  const auto failure = group_.try_decide_on_root(
      is_gone, [&] { return !open_prefix_storage_(source.prefix)->is_published(tag.directory); });
  return !failure && is_gone;
}

OpenedSource SourceRecovery::open(const Source& source) {
  std::string reasons;
  std::set<std::string> logged;
  GivenUp given_up;  // failures of storage are retried by the next call
  for (const auto& [what, why] : excluded_) {
    if (what.first == source.prefix) given_up[what.second] = why;
  }
  const Deadline list_again_until = Deadline::after(std::min<comm::Group::Seconds>(group_.timeout() / 4, kListAgain));
  while (true) {
    const std::vector<FoundTag> tags = look(source, given_up, logged, list_again_until);
    for (const FoundTag& tag : tags) {
      std::string problem = tag.problem;
      if (tag.is_usable()) {
        OpenedSource opened{tag.commit, tag.total_bytes, tag.directory, nullptr, {}};
        const auto failure = group_.try_on_all_ranks([&] {
          opened.prefix = open_prefix_storage_(source.prefix);
          for (std::uint32_t rank = group_.logical_rank().value; rank < tag.commit.world_size;
               rank += group_.world_size()) {
            opened.holdings.push_back(Holding::on_prefix(*opened.prefix, tag.directory, tag.commit, LogicalRank{rank}));
          }
        });
        if (!failure) return opened;
        if (is_gone(source, tag) && !group_.any(list_again_until.passed())) break;
        problem = to_string(*failure);
        given_up[tag.commit.id] = problem;
      }
      const std::string line = compose("{} (generation {}): {}", tag.commit.tag, tag.commit.generation, problem);
      if (reasons.find(line) != std::string::npos) continue;
      reasons += compose("{}{}", reasons.empty() ? "" : "; ", line);
      if (group_.is_root()) log_.warning("skipped " + line);
    }
    if (tags.empty() || !tags.back().is_usable()) {
      throw Error(ErrorCode::unrecoverable,
                  compose("'{}' of {} cannot be recovered: {}", source.tag, source.prefix, reasons));
    }
  }
}

}  // namespace kedge::recovery

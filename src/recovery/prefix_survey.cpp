#include "recovery/prefix_survey.hpp"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "base/attempt.hpp"
#include "base/text.hpp"

namespace kedge::recovery {
namespace {

class PrefixSearch {
 public:
  PrefixSearch(persist::PrefixReader& prefix_storage, const persist::PrefixMarkers& markers,
               const PrefixQuery& question)
      : prefix_storage_(prefix_storage), markers_(markers), question_(question) {}

  PrefixSurvey run() {
    markers_.require_reachable();  // nor would it be known which commits were discarded
    const persist::TagList list = prefix_storage_.list_commits();
    for (const persist::TagEntry& entry : list.entries) {
      if (entry.commit.run_id == question_.run_id && is_possible(entry)) mine_.push_back(entry);
    }
    PrefixSurvey found;
    for (const Candidate& candidate : question_.in_stores) {
      const bool there = std::ranges::any_of(
          mine_, [&](const persist::TagEntry& entry) { return entry.commit.id == candidate.commit.id; });
      found.persistent.push_back(there ? 1 : 0);
    }
    found.commits_exist =
        std::ranges::any_of(mine_, [](const persist::TagEntry& entry) { return !entry.commit.is_output; });
    if (!mine_.empty()) found.highest_generation = mine_.front().commit.generation;
    warn_of(list.unusable_tags);
    found.warnings = std::move(warnings_);
    found.failure = attempt([&] { found.tags = walk(); });
    return found;
  }

 private:
  /// Only directories of this user count: others' directories under this run's name must not raise its generations.
  [[nodiscard]] bool is_possible(const persist::TagEntry& entry) {
    if (question_.trust != Trust::self || prefix_storage_.is_own(entry)) return true;
    warnings_.push_back(compose(
        "{} on the prefix is not trusted: it claims to belong to this run, but another user owns it", entry.directory));
    return false;
  }

  /// A directory without a readable manifest may be any run's commit.
  void warn_of(const std::vector<persist::UnusableTag>& unusable) {
    for (const persist::UnusableTag& one : unusable) {
      if (one.has_manifest)
        warnings_.push_back(compose("{} on the prefix cannot be used: {}", one.directory, one.reason));
    }
  }

  /// The lowest generation, in stores and prefix, of the tag that Before names; 0 if there is none.
  [[nodiscard]] std::uint64_t bound() const {
    const auto* before = std::get_if<Before>(&question_.selection);
    if (before == nullptr) return std::numeric_limits<std::uint64_t>::max();
    std::uint64_t lowest = 0;
    const auto consider = [&](const CommitHead& commit) {
      if (commit.tag == before->tag && (lowest == 0 || commit.generation < lowest)) lowest = commit.generation;
    };
    for (const Candidate& candidate : question_.in_stores) consider(candidate.commit);
    for (const persist::TagEntry& entry : mine_) consider(entry.commit);
    return lowest;
  }

  [[nodiscard]] std::vector<FoundTag> walk() const {
    const auto* tag = std::get_if<Tag>(&question_.selection);
    const auto* before = std::get_if<Before>(&question_.selection);
    const std::uint64_t limit = bound();
    std::vector<FoundTag> tags;
    bool found = false;
    std::size_t unusable = 0;
    for (const persist::TagEntry& entry : mine_) {
      // Before refers to the oldest commit of its tag, so that one must be known on all ranks.
      const bool is_bound = before != nullptr && entry.commit.tag == before->tag && entry.commit.generation == limit;
      const bool is_asked_for = tag == nullptr ? !entry.commit.is_output : entry.commit.tag == *tag;
      const bool wanted = entry.commit.generation < limit && is_asked_for;
      if (!is_bound && (!wanted || found)) continue;
      const FoundTag one = to_found_tag(entry);
      if (!one.is_usable() && !is_bound && ++unusable > kUnusableListedMax) continue;
      tags.push_back(one);
      found = found || (wanted && one.is_usable());
    }
    return tags;
  }

  [[nodiscard]] FoundTag to_found_tag(const persist::TagEntry& entry) const {
    if (std::string why = exclusion_reason(entry.commit); !why.empty()) return found_tag(entry, std::move(why));
    FoundTag found = check_tag_manifest(prefix_storage_, entry);
    // The manifest may contradict the list.
    found.problem = found.is_usable() ? exclusion_reason(found.commit) : "on the prefix: " + found.problem;
    return found;
  }

  /// Empty if the commit may be opened, judging by its head.
  [[nodiscard]] std::string exclusion_reason(const CommitHead& commit) const {
    if (std::string why = question_.ledger.excluded().reason(commit.id); !why.empty()) return why;
    if (markers_.is_discarded(commit.id)) return std::string(kDiscarded);
    return other_world_size(commit.world_size, question_.world_size, question_.other_ranks);
  }

  persist::PrefixReader& prefix_storage_;
  const persist::PrefixMarkers& markers_;
  const PrefixQuery& question_;
  std::vector<persist::TagEntry> mine_;  ///< newest first
  std::vector<std::string> warnings_;
};

}  // namespace

PrefixSurvey survey_prefix(persist::PrefixReader& prefix_storage, const persist::PrefixMarkers& markers,
                           const PrefixQuery& question) {
  return PrefixSearch(prefix_storage, markers, question).run();
}

}  // namespace kedge::recovery

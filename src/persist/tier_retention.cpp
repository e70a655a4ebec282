#include "persist/tier_retention.hpp"

#include <utility>

#include "base/attempt.hpp"
#include "base/text.hpp"

namespace kedge::persist {
namespace {

/// An older one must not go for one that no open would take.
bool is_some_use(Tier& tier, RunRecords& records, const TagEntry& entry) {
  if (records.is_discarded(entry.commit.id)) return false;
  bool is_it = false;
  const auto failure = attempt([&] { is_it = tier.read(entry.directory).commit.id == entry.commit.id; });
  return !failure && is_it;
}

/// Those that may go, newest first.
std::vector<TagEntry> superseded(Tier& tier, RunRecords& records, const TierRetention& retention) {
  std::vector<TagEntry> old;
  std::uint64_t newer = 0;
  for (TagEntry& entry : own_commits(tier, retention.run_id)) {
    if (entry.pinned) continue;
    if (newer < retention.keep) {
      if (!retention.no_use.contains(entry.commit.id) && is_some_use(tier, records, entry)) ++newer;
    } else if (!retention.spared.contains(entry.commit.id)) {
      old.push_back(std::move(entry));
    }
  }
  return old;
}

/// A removal that failed may have come as far as the manifest.
bool is_still_there(Tier& tier, const TagEntry& entry) {
  bool is_there = false;
  (void)attempt([&] { is_there = tier.is_published(entry.directory); });
  return is_there;
}

}  // namespace

std::vector<TagEntry> own_commits(Tier& tier, const Id128& run_id) {
  std::vector<TagEntry> own = tier.list().entries;
  std::erase_if(own, [&](const TagEntry& entry) { return entry.commit.run_id != run_id || !tier.is_own(entry); });
  return own;
}

Retained retain(Tier& tier, RunRecords& records, const TierRetention& retention) {
  Retained retained;
  if (retention.keep == 0) return retained;
  retained.failure = attempt([&] {
    for (TagEntry& entry : superseded(tier, records, retention)) {
      const auto failure = attempt([&] { tier.remove(entry); });
      if (!failure || !is_still_there(tier, entry)) retained.removed.push_back(std::move(entry));
      if (failure) throw Error(*failure);
    }
  });
  return retained;
}

void set_pinned(Tier& tier, RunRecords& records, const Id128& run_id, const Tag& tag, bool pinned) {
  for (const TagEntry& entry : own_commits(tier, run_id)) {
    if (entry.commit.tag == tag && !records.is_discarded(entry.commit.id)) return tier.set_pinned(entry, pinned);
  }
  throw Error(Failure{ErrorCode::not_found,
                      compose("no commit '{}' of this run is on the prefix; wait(tag, Level::persistent) first", tag),
                      -1, tier.where(), 0});
}

}  // namespace kedge::persist

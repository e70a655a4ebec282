#include "persist/prefix_retention.hpp"

#include <algorithm>

#include "base/attempt.hpp"
#include "base/text.hpp"

namespace kedge::persist {
namespace {

/// An older one must not go for one that no open would take.
bool is_recoverable(PrefixReader& reader, const PrefixMarkers& markers, const TagEntry& entry) {
  if (markers.is_discarded(entry.commit.id)) return false;
  bool is_it = false;
  const auto failure = attempt([&] { is_it = reader.read_commit(entry.directory).commit.id == entry.commit.id; });
  return !failure && is_it;
}

constexpr std::uint64_t kLookedAtEachTime = 4;  // an older one, once found good, is trusted until the next start

/// How many of the newest stay: `keep` recoverable ones, with what lies between them.
std::size_t count_kept(PrefixReader& reader, const PrefixMarkers& markers, PrefixCommitList& history,
                       const PrefixRetention& retention) {
  const std::vector<TagEntry>& entries = history.list_run_commits(reader, retention.run_id);
  if (entries.size() <= retention.prefix_keep) return entries.size();
  std::uint64_t counted = 0;
  std::size_t at = 0;
  for (; at < entries.size() && counted < retention.prefix_keep; ++at) {
    const TagEntry& entry = entries[at];
    if (entry.pinned || entry.commit.is_output || retention.unrecoverable.contains(entry.commit.id)) continue;
    const bool known = counted >= kLookedAtEachTime && history.is_known_readable(entry.commit.id);
    if (!known && !is_recoverable(reader, markers, entry)) continue;
    history.mark_readable(entry.commit.id);
    ++counted;
  }
  return at;
}

/// A removal that failed may have come as far as the manifest.
bool is_present(PrefixReader& reader, const TagEntry& entry) {
  bool is_there = false;
  (void)attempt([&] { is_there = reader.is_published(entry.directory); });
  return is_there;
}

}  // namespace

std::vector<TagEntry> list_own_commits(PrefixReader& reader, const Id128& run_id) {
  std::vector<TagEntry> own = reader.list_commits().entries;
  std::erase_if(own, [&](const TagEntry& entry) { return entry.commit.run_id != run_id || !reader.is_own(entry); });
  return own;
}

const std::vector<TagEntry>& PrefixCommitList::list_run_commits(PrefixReader& reader, const Id128& run_id) {
  if (!entries_) entries_ = list_own_commits(reader, run_id);
  return *entries_;
}

void PrefixCommitList::add_published(const TagEntry& entry) {
  if (!entries_) return;
  remove_retracted(entry.commit.id);  // the commit may have been flushed before
  mark_readable(entry.commit.id);
  const auto older = [&](const TagEntry& other) { return is_newer(entry.commit, other.commit); };
  entries_->insert(std::ranges::find_if(*entries_, older), entry);
}

void PrefixCommitList::remove_retracted(const Id128& commit_id) {
  readable_.erase(commit_id);
  if (entries_) std::erase_if(*entries_, [&](const TagEntry& entry) { return entry.commit.id == commit_id; });
}

void PrefixCommitList::mark_pinned(const Id128& commit_id) {
  if (!entries_) return;
  for (TagEntry& entry : *entries_) {
    if (entry.commit.id == commit_id) entry.pinned = true;
  }
}

RetractionResult retract_old_commits(const PrefixStorage& prefix, const PrefixMarkers& markers,
                                     PrefixCommitList& history, const PrefixRetention& retention,
                                     const fs::ShouldStop& should_stop) {
  RetractionResult retained;
  if (retention.prefix_keep == 0) return retained;
  std::optional<Failure> first;
  std::set<Id128> failed;
  std::set<Id128> pinned;
  retained.failure = attempt([&] {
    const std::size_t kept = count_kept(*prefix.reader, markers, history, retention);
    const std::vector<TagEntry>& entries = history.list_run_commits(*prefix.reader, retention.run_id);
    // One that cannot be removed does not keep the others: it is tried again after them.
    for (const bool stuck : {false, true}) {
      for (std::size_t at = entries.size(); at > kept; --at) {
        const TagEntry& entry = entries[at - 1];
        if (history.is_unremovable(entry.commit.id) != stuck || entry.pinned || entry.commit.is_output) continue;
        if (retention.always_kept.contains(entry.commit.id)) continue;
        if (should_stop && should_stop()) {
          retained.remaining_count = at - kept;
          return;
        }
        if (prefix.remover->is_pinned(entry.directory)) {
          pinned.insert(entry.commit.id);
          continue;
        }
        const auto failure = attempt([&] { prefix.remover->retract(entry); });
        if (!failure || !is_present(*prefix.reader, entry)) retained.retracted.push_back(entry);
        if (!failure) continue;
        if (failure->code == ErrorCode::busy) throw Error(*failure);
        if (!first) first = failure;
        failed.insert(entry.commit.id);
      }
    }
  });
  for (const Id128& commit_id : pinned) history.mark_pinned(commit_id);
  for (const Id128& commit_id : failed) history.mark_unremovable(commit_id);
  if (!retained.failure) retained.failure = first;
  for (const TagEntry& entry : retained.retracted) history.remove_retracted(entry.commit.id);
  return retained;
}

std::uint64_t removable_bytes(PrefixReader& reader, const PrefixMarkers& markers, PrefixCommitList& history,
                              const PrefixRetention& retention) {
  const std::size_t kept = count_kept(reader, markers, history, retention);
  std::uint64_t bytes = 0;
  const std::vector<TagEntry>& entries = history.list_run_commits(reader, retention.run_id);
  for (std::size_t at = kept; at < entries.size(); ++at) {
    const TagEntry& entry = entries[at];
    if (entry.pinned || entry.commit.is_output) continue;
    if (!retention.always_kept.contains(entry.commit.id)) bytes += entry.total_bytes;
  }
  return bytes;
}

void set_pinned(const PrefixStorage& prefix, const PrefixMarkers& markers, const Id128& run_id, const Tag& tag,
                bool pinned) {
  for (const TagEntry& entry : list_own_commits(*prefix.reader, run_id)) {
    if (entry.commit.tag == tag && !markers.is_discarded(entry.commit.id))
      return prefix.remover->set_pinned(entry, pinned);
  }
  refuse(ErrorCode::not_found,
         compose("no commit '{}' of this run is on the prefix; wait(tag, Level::persistent) first", tag),
         prefix.reader->location());
}

}  // namespace kedge::persist

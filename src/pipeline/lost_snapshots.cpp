#include "pipeline/lost_snapshots.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace kedge::pipeline {
namespace {

/// Names of a lost snapshot and the newest remaining checkpoint, which may have the same tag.
struct Names {
  Names(const CommitHead& lost_one, const std::optional<commits::Entry>& newest)
      : lost(lost_one.tag), left(newest ? newest->commit.tag : Tag("none")) {
    if (lost != left) return;
    lost += compose(" (generation {})", lost_one.generation);
    left += compose(" (generation {})", newest ? newest->commit.generation : 0);
  }
  std::string lost;
  std::string left;
};

}  // namespace

void LostSnapshots::add(const CommitHead& commit, const Failure& failure) {
  const std::lock_guard guard(mutex_);
  lost_.push_front({commit, failure});
  if (lost_.size() > kMost) lost_.pop_back();
}

void LostSnapshots::forget(std::string_view tag) {
  const std::lock_guard guard(mutex_);
  std::erase_if(lost_, [&](const Lost& lost) { return lost.commit.tag == tag; });
}

std::optional<LostSnapshots::Lost> LostSnapshots::newest() const {
  const std::lock_guard guard(mutex_);
  return lost_.empty() ? std::nullopt : std::optional(lost_.front());
}

std::optional<LostSnapshots::Lost> LostSnapshots::newest_of(std::string_view tag) const {
  const std::lock_guard guard(mutex_);
  const auto found = std::ranges::find_if(lost_, [&](const Lost& lost) { return lost.commit.tag == tag; });
  return found == lost_.end() ? std::nullopt : std::optional(*found);
}

std::optional<LostSnapshots::Lost> LostSnapshots::find(std::string_view tag) const {
  const auto newest = ledger_.known().newest_of(tag);  // first: the worker notes a loss before it drops the snapshot
  auto lost = newest_of(tag);
  if (lost && newest && is_newer(*newest, lost->commit)) return std::nullopt;
  return lost;
}

void LostSnapshots::begin(const Tag& tag) {
  last_tag_ = tag;
  is_reported_ = false;
}

void LostSnapshots::mark_reported(std::string_view tag) noexcept { is_reported_ = is_reported_ || tag == last_tag_; }

std::optional<Failure> LostSnapshots::unreported() const {
  const auto left = ledger_.known().newest();
  const auto lost = newest();
  if (!lost || is_reported_ || (left && is_newer(left->commit, lost->commit))) return std::nullopt;
  const Names names(lost->commit, left);
  Failure failure = lost->failure;
  failure.message = compose(
      "the newest checkpoint, {}, is lost: its snapshot could not be written to the node-local stores: {}; {} "
      "is the newest that is left, and the node-local files are kept. Call wait(tag, local) before finalize: if it "
      "throws, the program can still write another checkpoint",
      names.lost, to_string(lost->failure), names.left);
  failure.path.clear();  // the text contains it
  failure.system_errno = 0;
  return failure;
}

std::string lost_snapshot_warning(const commits::Ledger& ledger, const CommitHead& commit, const Failure& failure) {
  const Names names(commit, ledger.known().newest());
  return compose(
      "the snapshot of {} could not be written to the node-local stores and is lost: {}; {} is still the "
      "newest checkpoint, and the next one may succeed",
      names.lost, to_string(failure), names.left);
}

}  // namespace kedge::pipeline

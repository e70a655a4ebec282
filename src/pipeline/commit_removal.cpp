#include "pipeline/commit_removal.hpp"

#include <algorithm>
#include <span>
#include <string_view>
#include <utility>

#include "base/attempt.hpp"
#include "base/text.hpp"
#include "comm/wire.hpp"

namespace kedge::pipeline {
namespace {

std::vector<std::byte> pack_leftovers(const std::vector<persist::Leftover>& remains) {
  comm::Packer packer;
  for (const persist::Leftover& one : remains) {
    packer.put(std::string_view(one.name));
    packer.put(one.ranks);
  }
  return packer.take();
}

std::vector<persist::Leftover> unpack_leftovers(std::span<const std::byte> message) {
  std::vector<persist::Leftover> remains;
  for (comm::Unpacker unpacker(message); !unpacker.empty();) {
    std::string name = unpacker.get_text();
    remains.push_back({std::move(name), unpacker.get<std::uint32_t>()});
  }
  return remains;
}

}  // namespace

void CommitRemoval::add_leftovers(const comm::Group& group, const std::vector<persist::Leftover>& remains) {
  std::vector<std::byte> message;
  if (group.is_root()) message = pack_leftovers(remains);
  group.broadcast(message);
  for (persist::Leftover& one : unpack_leftovers(message)) {
    forget_name(one.name);
    queue_.push_back({std::move(one), static_cast<std::uint64_t>(group.rank())});
  }
}

void CommitRemoval::forget_name(const std::string& name) {
  std::erase_if(queue_, [&](const Item& item) { return item.remains.name == name; });
}

std::size_t CommitRemoval::run_step(const comm::Group& group, double budget_s) {
  if (queue_.empty()) return 0;
  const double give_up_at = clock_.seconds() + budget_s;
  const std::uint64_t mine = remove_share(group, give_up_at);
  const std::uint64_t finished = group.min(mine);
  std::uint64_t cleared = 0;
  const auto failure = group.try_decide_on_root(cleared, [&] { return clear_finished(finished, give_up_at); });
  comm::throw_if(failure);
  queue_.erase(queue_.begin(), queue_.begin() + static_cast<std::ptrdiff_t>(cleared));
  return cleared;
}

void CommitRemoval::log_if_slow(std::size_t cleared, double seconds) {
  if (queue_.empty() || std::exchange(has_logged_slow_, true)) return;
  log_.warning(compose(
      "removing old checkpoints from the prefix is slow: {} removed in {:.1f} s; later flushes and the next start "
      "remove the other {}",
      cleared, seconds, queue_.size()));
}

/// Local. The number of items at the front of the queue that this process has finished.
std::uint64_t CommitRemoval::remove_share(const comm::Group& group, double give_up_at) {
  bool begun = false;
  const auto should_stop = [&] { return std::exchange(begun, true) && clock_.seconds() >= give_up_at; };
  std::uint64_t finished = 0;
  for (Item& item : queue_) {
    for (; item.next < item.remains.ranks; item.next += static_cast<std::uint64_t>(group.size())) {
      if (begun && clock_.seconds() >= give_up_at) return finished;
      bool is_gone = true;
      const LogicalRank rank{static_cast<std::uint32_t>(item.next)};
      const auto failure = attempt([&] { is_gone = remover_.remove_container(item.remains.name, rank, should_stop); });
      if (failure) warn_once(to_string(*failure));
      if (!is_gone) return finished;
      begun = true;
    }
    ++finished;
  }
  return finished;
}

/// Local, rank 0. Removes manifests and directories of finished items; returns how many. Throws busy.
std::uint64_t CommitRemoval::clear_finished(std::uint64_t finished, double give_up_at) {
  std::uint64_t cleared = 0;
  while (cleared < finished && (cleared == 0 || clock_.seconds() < give_up_at)) {
    const auto failure = attempt([&] { remover_.clear_name(queue_[cleared].remains.name); });
    if (failure && failure->code == ErrorCode::busy) throw Error(*failure);
    if (failure) warn_once(to_string(*failure));
    ++cleared;
  }
  return cleared;
}

void CommitRemoval::warn_once(const std::string& text) {
  if (std::exchange(warned_, true)) return;
  log_.warning(
      "the remaining files of an old checkpoint could not be removed from the prefix (the next start retries): " +
      text);
}

}  // namespace kedge::pipeline

#include "pipeline/removal.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/attempt.hpp"
#include "base/text.hpp"

namespace kedge::pipeline {
namespace {

constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();

std::string pack(const std::vector<persist::Remains>& remains) {
  std::string text;
  for (const persist::Remains& one : remains) text += compose("{} {}\n", one.name, one.ranks);
  return text;
}

/// Names of tag directories have neither spaces nor line ends.
std::vector<persist::Remains> unpack(std::string_view text) {
  std::vector<persist::Remains> remains;
  while (!text.empty()) {
    const std::size_t space = text.find(' ');
    const std::size_t end = text.find('\n');
    remains.push_back({std::string(text.substr(0, space)),
                       static_cast<std::uint32_t>(std::stoul(std::string(text.substr(space + 1, end - space - 1))))});
    text.remove_prefix(end + 1);
  }
  return remains;
}

}  // namespace

void Removal::add(const comm::Group& group, const std::vector<persist::Remains>& remains) {
  std::string text = group.is_root() ? pack(remains) : std::string();
  group.broadcast(text);
  for (persist::Remains& one : unpack(text)) {
    forget(one.name);
    queue_.push_back({std::move(one), static_cast<std::uint64_t>(group.rank())});
  }
}

void Removal::forget(const std::string& name) {
  std::erase_if(queue_, [&](const Item& item) { return item.remains.name == name; });
}

void Removal::step(const comm::Group& group, double budget_s) {
  if (queue_.empty()) return;
  const double begun_at = clock_.seconds();
  const double give_up_at = begun_at + budget_s;
  const std::uint64_t mine = remove_share(group, give_up_at);
  const std::uint64_t finished = kMax - group.max(kMax - mine);  // the minimum
  std::uint64_t cleared = 0;
  const auto failure = group.try_root_decides(cleared, [&] { return clear(finished, give_up_at); });
  comm::throw_if(failure);
  queue_.erase(queue_.begin(), queue_.begin() + static_cast<std::ptrdiff_t>(cleared));
  if (queue_.empty() || !group.is_root() || std::exchange(said_slow_, true)) return;
  log_.warning(
      compose("removing the files of old checkpoints from the prefix is slow: {} done in {:.1f} s, {} left, which "
              "later flushes "
              "and the next start remove",
              cleared, clock_.seconds() - begun_at, queue_.size()));
}

/// Local. How many items at the front this process has nothing left to do for.
std::uint64_t Removal::remove_share(const comm::Group& group, double give_up_at) {
  bool removed = false;
  std::uint64_t finished = 0;
  for (Item& item : queue_) {
    for (; item.next < item.remains.ranks; item.next += static_cast<std::uint64_t>(group.size())) {
      if (removed && clock_.seconds() >= give_up_at) return finished;
      const LogicalRank rank{static_cast<std::uint32_t>(item.next)};
      if (const auto failure = attempt([&] { tier_.remove_container(item.remains.name, rank); })) {
        warn_once(to_string(*failure));
      }
      removed = true;
    }
    ++finished;
  }
  return finished;
}

/// Local, rank 0. How many of these it has done with. Throws busy.
std::uint64_t Removal::clear(std::uint64_t finished, double give_up_at) {
  std::uint64_t cleared = 0;
  while (cleared < finished && (cleared == 0 || clock_.seconds() < give_up_at)) {
    const auto failure = attempt([&] { tier_.clear(queue_[cleared].remains.name); });
    if (failure && failure->code == ErrorCode::busy) throw Error(*failure);
    if (failure) warn_once(to_string(*failure));
    ++cleared;
  }
  return cleared;
}

void Removal::warn_once(const std::string& text) {
  if (std::exchange(warned_, true)) return;
  log_.warning(
      "the remaining files of an old checkpoint could not be removed from the prefix (the next start retries): " +
      text);
}

}  // namespace kedge::pipeline

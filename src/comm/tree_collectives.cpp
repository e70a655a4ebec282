#include "comm/tree_collectives.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <type_traits>
#include <utility>

#include "base/text.hpp"
#include "comm/channels.hpp"
#include "kedge/error.hpp"

namespace kedge::comm {
namespace {

/// This rank's place in a binomial tree over a rank list, counted from the root.
class Tree {
 public:
  Tree(const Communicator& communicator, std::span<const int> group, std::optional<int> root) : group_(group) {
    size_ = group.empty() ? communicator.size() : static_cast<int>(group.size());
    root_ = root ? index_of(*root) : 0;
    index_ = (index_of(communicator.rank()) - root_ + size_) % size_;
  }

  /// The rank above this one; nothing for the root.
  [[nodiscard]] std::optional<int> parent() const {
    if (index_ == 0) return std::nullopt;
    return rank_at(index_ & (index_ - 1));
  }

  /// The ranks below this one, that with the deepest subtree first.
  [[nodiscard]] std::vector<int> children() const {
    std::vector<int> ranks;
    for (int bit = 1; (index_ & bit) == 0 && bit < size_; bit <<= 1) {
      if ((index_ | bit) < size_) ranks.push_back(rank_at(index_ | bit));
    }
    std::reverse(ranks.begin(), ranks.end());
    return ranks;
  }

 private:
  [[nodiscard]] int index_of(int rank) const {
    if (group_.empty() && rank >= 0 && rank < size_) return rank;
    const auto found = std::find(group_.begin(), group_.end(), rank);
    if (found != group_.end()) return static_cast<int>(found - group_.begin());
    throw Error(ErrorCode::invalid_argument,
                compose("rank {} is not in the group of {} ranks; only members of a group may call its collectives",
                        rank, size_));
  }
  [[nodiscard]] int rank_at(int index) const {
    const int shifted = (index + root_) % size_;
    return group_.empty() ? shifted : group_[static_cast<std::size_t>(shifted)];
  }

  std::span<const int> group_;
  int size_ = 0;
  int root_ = 0;
  int index_ = 0;
};

void wait_one(Communicator& communicator, Communicator::Request request, Deadline deadline) {
  communicator.wait(std::span(&request, 1), deadline);
}

void send_to_all(Communicator& communicator, const std::vector<int>& ranks, int channel,
                 std::span<const std::byte> bytes, Deadline deadline) {
  std::vector<Communicator::Request> sends;
  sends.reserve(ranks.size());
  for (const int rank : ranks) sends.push_back(communicator.send(rank, channel, bytes));
  communicator.wait(sends, deadline);
}

void send_down(Communicator& communicator, const Tree& tree, std::span<std::byte> bytes, int channel,
               Deadline deadline) {
  if (const auto parent = tree.parent()) {
    wait_one(communicator, communicator.receive(*parent, channel, bytes), deadline);
  }
  send_to_all(communicator, tree.children(), channel, bytes, deadline);
}

/// Of one message. Sent from rank to rank of one job.
struct Announcement {
  std::int32_t from = 0;
  std::int32_t to = 0;
  std::uint64_t bytes = 0;
};
static_assert(std::is_trivially_copyable_v<Announcement> && sizeof(Announcement) == 16);

/// COLLECTIVE. Passes announcements to the rank `distance` ahead, and returns those of the rank as far behind.
std::vector<Announcement> pass_ahead(Communicator& communicator, int distance,
                                     std::span<const Announcement> announcements, Deadline deadline) {
  const int ahead = (communicator.rank() + distance) % communicator.size();
  const int behind = (communicator.rank() + communicator.size() - distance) % communicator.size();
  const std::uint64_t passed = announcements.size();
  std::uint64_t arriving = 0;
  std::vector<Communicator::Request> requests;
  requests.push_back(communicator.receive(behind, kExchangeChannel, std::as_writable_bytes(std::span(&arriving, 1))));
  requests.push_back(communicator.send(ahead, kExchangeChannel, std::as_bytes(std::span(&passed, 1))));
  if (passed > 0) requests.push_back(communicator.send(ahead, kExchangeChannel, std::as_bytes(announcements)));
  communicator.wait(std::span(requests).first(1), deadline);
  std::vector<Announcement> arrived(arriving);
  if (arriving > 0) {  // before the wait for sends: all ranks may wait for theirs to be received
    requests.push_back(communicator.receive(behind, kExchangeChannel, std::as_writable_bytes(std::span(arrived))));
  }
  communicator.wait(requests, deadline);
  return arrived;
}

/// COLLECTIVE. The announcements for this rank of those that all ranks have; of one sender in order.
std::vector<Announcement> route(Communicator& communicator, std::vector<Announcement> announcements,
                                Deadline deadline) {
  const int size = communicator.size();
  for (int distance = 1; distance < size; distance *= 2) {
    const auto stays = [&](const Announcement& one) {
      const int way_left = (one.to - communicator.rank() + size) % size;
      return (way_left & distance) == 0;
    };
    const auto leaving = std::stable_partition(announcements.begin(), announcements.end(), stays);
    const auto arrived = pass_ahead(communicator, distance, std::span(leaving, announcements.end()), deadline);
    announcements.erase(leaving, announcements.end());
    announcements.insert(announcements.end(), arrived.begin(), arrived.end());
  }
  return announcements;
}

}  // namespace

void reduce_into(std::span<std::uint64_t> values, std::span<const std::uint64_t> others, Reduction reduction) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    switch (reduction) {
      case Reduction::min: values[i] = std::min(values[i], others[i]); break;
      case Reduction::max: values[i] = std::max(values[i], others[i]); break;
      case Reduction::sum: values[i] += others[i]; break;
      case Reduction::bit_or: values[i] |= others[i]; break;
      case Reduction::bit_and: values[i] &= others[i]; break;
    }
  }
}

void tree_all_reduce(Communicator& communicator, std::span<std::uint64_t> values, Reduction reduction,
                     Deadline deadline, std::span<const int> group) {
  const Tree tree(communicator, group, std::nullopt);
  const auto children = tree.children();
  std::vector<std::uint64_t> received(values.size() * children.size());
  std::vector<Communicator::Request> receives;
  receives.reserve(children.size());
  for (std::size_t i = 0; i < children.size(); ++i) {
    const auto part = std::span(received).subspan(i * values.size(), values.size());
    receives.push_back(communicator.receive(children[i], kReduceChannel, std::as_writable_bytes(part)));
  }
  communicator.wait(receives, deadline);
  for (std::size_t i = 0; i < children.size(); ++i) {
    reduce_into(values, std::span(received).subspan(i * values.size(), values.size()), reduction);
  }
  if (const auto parent = tree.parent()) {
    wait_one(communicator, communicator.send(*parent, kReduceChannel, std::as_bytes(values)), deadline);
  }
  send_down(communicator, tree, std::as_writable_bytes(values), kBroadcastChannel, deadline);
}

void tree_broadcast(Communicator& communicator, std::span<std::byte> bytes, int root, Deadline deadline,
                    std::span<const int> group) {
  send_down(communicator, Tree(communicator, group, root), bytes, kBroadcastChannel, deadline);
}

void tree_barrier(Communicator& communicator, Deadline deadline, std::span<const int> group) {
  tree_all_reduce(communicator, {}, Reduction::sum, deadline, group);
}

std::vector<Communicator::Message> routed_sparse_exchange(Communicator& communicator,
                                                          std::vector<Communicator::Message> messages,
                                                          Deadline deadline) {
  const int rank = communicator.rank();
  std::vector<Announcement> announcements;
  for (const auto& message : messages) {
    if (message.peer != rank) announcements.push_back({rank, message.peer, message.bytes.size()});
  }
  std::vector<Communicator::Message> received;
  std::vector<Communicator::Request> requests;
  for (const Announcement& one : route(communicator, std::move(announcements), deadline)) {
    auto& message = received.emplace_back(Communicator::Message{one.from, std::vector<std::byte>(one.bytes)});
    requests.push_back(communicator.receive(one.from, kExchangeChannel, message.bytes));
  }
  for (auto& message : messages) {
    if (message.peer == rank) received.push_back(std::move(message));
    else requests.push_back(communicator.send(message.peer, kExchangeChannel, message.bytes));
  }
  communicator.wait(requests, deadline);
  std::ranges::stable_sort(received, {}, &Communicator::Message::peer);
  return received;
}

}  // namespace kedge::comm

#include "comm/sparse_exchange.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>

#include "comm/channels.hpp"

namespace kedge::comm {
namespace {

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

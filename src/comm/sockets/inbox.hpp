// Which message is for which receive.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "kedge/error.hpp"

namespace kedge::comm {

/// A send or receive under way. Shared between whoever waits for it and what works on it.
struct MessageState {
  int peer = -1;                      ///< to whom it is sent, or from whom received
  std::span<const std::byte> source;  ///< of a send
  std::span<std::byte> target;        ///< of a receive
  bool done = false;
  std::optional<Failure> failure;  ///< once it is done: of this message alone
};

/// Messages of one sender in one lane stay in order.
struct Lane {
  std::uint16_t channel = 0;
  std::uint32_t tag = 0;
  auto operator<=>(const Lane&) const = default;
};

/// A message of which the bytes have come, or which can be had.
struct Arrival {
  int from = 0;
  std::vector<std::byte> bytes;  ///< of a small message
  struct Offer {
    std::uint64_t id = 0;
    std::uint64_t size = 0;
  };
  std::optional<Offer> offer;  ///< of a large one

  [[nodiscard]] std::uint64_t size() const noexcept { return offer ? offer->size : bytes.size(); }
};

/// Messages that nobody expects yet, and receives for which there is no message yet; in each lane, in order. Never both
/// for one sender and lane.
class Inbox {
 public:
  /// Takes out what waits for this message; null if nobody expects it.
  [[nodiscard]] std::shared_ptr<MessageState> take_receive(const Lane& lane, int from);
  /// Takes out the first message of this rank.
  [[nodiscard]] std::optional<Arrival> handle_arrival(const Lane& lane, int from);
  void expect(const Lane& lane, std::shared_ptr<MessageState> receive) {
    boxes_[lane].receives.push_back(std::move(receive));
  }
  void keep(const Lane& lane, Arrival arrival) { boxes_[lane].arrivals.push_back(std::move(arrival)); }

 private:
  struct Box {
    std::list<Arrival> arrivals;
    std::list<std::shared_ptr<MessageState>> receives;
  };
  void drop_if_empty(std::map<Lane, Box>::iterator box);

  std::map<Lane, Box> boxes_;
};

}  // namespace kedge::comm

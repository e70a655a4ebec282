// Matches messages with receives.
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

/// A send or receive in progress, shared by the caller that waits for it and the mesh.
struct MessageState {
  int peer = -1;                      ///< receiver of a send, or sender of a receive
  std::span<const std::byte> source;  ///< the bytes of a send
  std::span<std::byte> target;        ///< the memory of a receive
  bool is_done = false;
  std::optional<Failure> failure;  ///< why this message failed, once it is done
};

/// Messages of one sender on one channel and tag stay in order.
struct Lane {
  std::uint16_t channel = 0;
  std::uint32_t tag = 0;
  auto operator<=>(const Lane&) const = default;
};

/// A message that has arrived, or was offered.
struct ArrivedMessage {
  int from = 0;
  std::vector<std::byte> bytes;  ///< bytes of a small message
  struct Offer {
    std::uint64_t id = 0;
    std::uint64_t size = 0;
  };
  std::optional<Offer> offer;  ///< offer of a large message

  [[nodiscard]] std::uint64_t size() const noexcept { return offer ? offer->size : bytes.size(); }
};

/// Messages without a receive, and receives without a message; in each lane, in order. One sender and lane never has
/// both.
class Inbox {
 public:
  /// Removes and returns the receive that matches this message; null if there is none.
  [[nodiscard]] std::shared_ptr<MessageState> take_receive(const Lane& lane, int from);
  /// Removes and returns the first message of this rank.
  [[nodiscard]] std::optional<ArrivedMessage> take_message(const Lane& lane, int from);
  void add_receive(const Lane& lane, std::shared_ptr<MessageState> receive) {
    mailboxes_[lane].receives.push_back(std::move(receive));
  }
  void add_message(const Lane& lane, ArrivedMessage arrival) {
    mailboxes_[lane].messages.push_back(std::move(arrival));
  }

 private:
  struct Mailbox {
    std::list<ArrivedMessage> messages;
    std::list<std::shared_ptr<MessageState>> receives;
  };
  void drop_if_empty(std::map<Lane, Mailbox>::iterator box);

  std::map<Lane, Mailbox> mailboxes_;
};

}  // namespace kedge::comm

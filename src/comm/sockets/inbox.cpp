#include "comm/sockets/inbox.hpp"

#include <algorithm>
#include <utility>

namespace kedge::comm {

std::shared_ptr<MessageState> Inbox::take_receive(const Lane& lane, int from) {
  const auto box = mailboxes_.find(lane);
  if (box == mailboxes_.end()) return nullptr;
  auto& receives = box->second.receives;
  const auto found = std::ranges::find(receives, from, &MessageState::peer);
  if (found == receives.end()) return nullptr;
  auto receive = std::move(*found);
  receives.erase(found);
  drop_if_empty(box);
  return receive;
}

std::optional<ArrivedMessage> Inbox::take_message(const Lane& lane, int from) {
  const auto box = mailboxes_.find(lane);
  if (box == mailboxes_.end()) return std::nullopt;
  auto& arrivals = box->second.messages;
  const auto found = std::ranges::find(arrivals, from, &ArrivedMessage::from);
  if (found == arrivals.end()) return std::nullopt;
  std::optional<ArrivedMessage> arrival(std::move(*found));
  arrivals.erase(found);
  drop_if_empty(box);
  return arrival;
}

void Inbox::drop_if_empty(std::map<Lane, Mailbox>::iterator box) {
  if (box->second.messages.empty() && box->second.receives.empty()) mailboxes_.erase(box);
}

}  // namespace kedge::comm

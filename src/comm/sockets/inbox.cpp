#include "comm/sockets/inbox.hpp"

#include <algorithm>
#include <utility>

namespace kedge::comm {

std::shared_ptr<MessageState> Inbox::take_receive(const Lane& lane, int from) {
  const auto box = boxes_.find(lane);
  if (box == boxes_.end()) return nullptr;
  auto& receives = box->second.receives;
  const auto found = std::ranges::find(receives, from, &MessageState::peer);
  if (found == receives.end()) return nullptr;
  auto receive = std::move(*found);
  receives.erase(found);
  drop_if_empty(box);
  return receive;
}

std::optional<Arrival> Inbox::handle_arrival(const Lane& lane, int from) {
  const auto box = boxes_.find(lane);
  if (box == boxes_.end()) return std::nullopt;
  auto& arrivals = box->second.arrivals;
  const auto found = std::ranges::find(arrivals, from, &Arrival::from);
  if (found == arrivals.end()) return std::nullopt;
  std::optional<Arrival> arrival(std::move(*found));
  arrivals.erase(found);
  drop_if_empty(box);
  return arrival;
}

void Inbox::drop_if_empty(std::map<Lane, Box>::iterator box) {
  if (box->second.arrivals.empty() && box->second.receives.empty()) boxes_.erase(box);
}

}  // namespace kedge::comm

#include "comm/transport/self_messages.hpp"

#include <algorithm>
#include <memory>

#include "base/text.hpp"
#include "kedge/error.hpp"

namespace kedge::comm {

void SelfMessages::send(int channel, std::span<const std::byte> bytes) {
  Lane& lane = lanes_[channel];
  lane.waiting.try_emplace(lane.sent++, bytes.begin(), bytes.end());
}

Communicator::Request SelfMessages::receive(int channel, std::span<std::byte> bytes) {
  return std::make_unique<SelfReceive>(*this, channel, lanes_[channel].received++, bytes);
}

bool SelfReceive::test() {
  auto& waiting = messages_.lanes_[channel_].waiting;
  const auto found = waiting.find(number_);
  if (found == waiting.end()) return false;
  const auto message = std::move(found->second);
  waiting.erase(found);
  if (message.size() != target_.size()) {
    throw Error(ErrorCode::bad_state, compose("expected {} bytes from this rank itself and got {}; send and receive "
                                              "sizes must match",
                                              target_.size(), message.size()));
  }
  std::ranges::copy(message, target_.begin());
  return true;
}

}  // namespace kedge::comm

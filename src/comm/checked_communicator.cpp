#include "comm/checked_communicator.hpp"

#include "base/text.hpp"
#include "comm/channels.hpp"

namespace kedge::comm {

Error timeout_error(int rank, std::string_view whom, Deadline deadline) {
  if (const double stopped_s = deadline.stopped_s(); stopped_s > 0) {
    return {ErrorCode::timeout, compose("rank {} timed out waiting for {}; it was itself stopped for {} of that time, "
                                        "so the others may have given up on it: check what stops this job's processes",
                                        rank, whom, human_seconds(stopped_s))};
  }
  return {ErrorCode::timeout, compose("rank {} timed out waiting for {}; check what delays it", rank, whom)};
}

void CheckedCommunicator::require_unconnected() const {
  if (connected_) throw Error(ErrorCode::bad_state, "this communicator is already connected; connect it only once");
}

void CheckedCommunicator::require_usable() const {
  if (interrupted_) throw Error(ErrorCode::timeout, "this communicator was interrupted");
  if (has_ended_) {
    throw Error(ErrorCode::bad_state, "this communicator timed out or failed, and cannot be used again");
  }
  if (!connected_) throw Error(ErrorCode::bad_state, "connect this communicator before using it");
}

void CheckedCommunicator::require_peer(int peer) const {
  if (peer >= 0 && peer < size_) return;
  throw Error(ErrorCode::invalid_argument, compose("there is no rank {}; ranks are 0 to {}", peer, size_ - 1));
}

void CheckedCommunicator::require_peer_and_channel(int peer, int channel) const {
  require_peer(peer);
  if (channel >= 0 && channel < kChannelLimit) return;
  throw Error(ErrorCode::invalid_argument,
              compose("there is no channel {}; channels are 0 to {}", channel, kFirstInternalChannel - 1));
}

void CheckedCommunicator::throw_timeout(std::string_view whom, Deadline deadline) {
  has_ended_ = true;
  throw timeout_error(rank_, whom, deadline);
}

}  // namespace kedge::comm

#include "comm/transport/transport_transfer.hpp"

#include <algorithm>
#include <cstring>

#include "base/keep_forever.hpp"
#include "base/text.hpp"
#include "kedge/error.hpp"

namespace kedge::comm {
namespace {

constexpr std::size_t kHeadBytes = sizeof(std::uint64_t);

bool is_small(std::size_t size) { return size <= TransportTransfer::kSmallBytes; }

}  // namespace

TransportTransfer::TransportTransfer(Transport& transport, int to, int channel, std::span<const std::byte> bytes)
    : TransportTransfer(to, std::span<std::byte>(), false) {
  const std::uint64_t size = bytes.size();
  memory_->head.resize(kHeadBytes + (is_small(bytes.size()) ? bytes.size() : 0));
  std::memcpy(memory_->head.data(), &size, kHeadBytes);
  if (is_small(bytes.size())) std::ranges::copy(bytes, memory_->head.begin() + kHeadBytes);
  parts_[0] = transport.send(to, channel, memory_->head);
  if (is_small(bytes.size())) return;
  if (channel >= kUserChannels) {
    memory_->body.assign(bytes.begin(), bytes.end());
    bytes = memory_->body;
  }
  parts_[1] = transport.send(to, channel, bytes);
}

TransportTransfer::TransportTransfer(Transport& transport, int from, int channel, std::span<std::byte> bytes)
    : TransportTransfer(from, bytes, true) {
  memory_->head.resize(kHeadBytes + (is_small(bytes.size()) ? bytes.size() : 0));
  parts_[0] = transport.receive(from, channel, memory_->head);
  if (is_small(bytes.size())) return;
  if (channel >= kUserChannels) {
    memory_->body.resize(bytes.size());
    bytes = memory_->body;
  }
  parts_[1] = transport.receive(from, channel, bytes);
}

TransportTransfer::~TransportTransfer() {
  if (parts_[0] != nullptr || parts_[1] != nullptr) keep_forever(std::shared_ptr<Memory>(std::move(memory_)));
}

bool TransportTransfer::test() {
  return complete([](Transport::Transfer& part) { return part.test(); });
}

bool TransportTransfer::wait(Deadline deadline) {
  return complete([&](Transport::Transfer& part) { return part.wait(deadline); });
}

template <class Done>
bool TransportTransfer::complete(Done&& done) {
  if (parts_[0] != nullptr) {
    if (!done(*parts_[0])) return false;
    parts_[0].reset();
    if (receives_) check_size();
    if (receives_ && is_small(target_.size())) {
      std::copy(memory_->head.begin() + kHeadBytes, memory_->head.end(), target_.begin());
    }
  }
  if (parts_[1] != nullptr) {
    if (!done(*parts_[1])) return false;
    parts_[1].reset();
    if (receives_ && !memory_->body.empty()) std::ranges::copy(memory_->body, target_.begin());
  }
  return true;
}

void TransportTransfer::check_size() const {
  std::uint64_t size = 0;
  std::memcpy(&size, memory_->head.data(), kHeadBytes);
  if (size == target_.size()) return;
  throw Error(ErrorCode::bad_state,
              compose("expected {} bytes from rank {} and got {}; send and receive sizes must match", target_.size(),
                      peer_, size));
}

}  // namespace kedge::comm

#include "comm/hosted/in_process_messages.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <type_traits>

#include "base/invariant.hpp"
#include "base/text.hpp"

namespace kedge::comm {
namespace {

// Messages up to this size are copied when they are sent.
constexpr std::size_t kSmallBytes = 4096;
// How long it takes at most until a message of another process is seen.
constexpr std::chrono::microseconds kPause{100};

enum class MessageKind : std::uint32_t { message, received, all_ended };

/// Before each message from process to process.
struct Head {
  MessageKind kind = MessageKind::message;
  int from = 0;
  Address address;
  std::uint32_t padding = 0;
  std::uint64_t number = 0;  ///< of a message that is answered when it is received, and of the answer; else 0
};
static_assert(std::is_trivially_copyable_v<Head> && sizeof(Head) == 32, "on the wire between processes of one job");

std::vector<std::byte> packed(const Head& head, std::span<const std::byte> bytes) {
  std::vector<std::byte> message(sizeof head + bytes.size());
  std::memcpy(message.data(), &head, sizeof head);
  if (!bytes.empty()) std::memcpy(message.data() + sizeof head, bytes.data(), bytes.size());
  return message;
}

}  // namespace

InProcessMessages::InProcessMessages(std::vector<int> hosts, int process)
    : hosts_(std::move(hosts)), process_(process) {
  for (int rank = 0; rank < size(); ++rank) {
    if (hosts_[static_cast<std::size_t>(rank)] == process_) changed_[rank];
  }
}

int InProcessMessages::next_channel(int rank) {
  const Lock lock(mutex_);
  return ++channels_[rank];
}

std::shared_ptr<MessageRequest> InProcessMessages::send(int from, const Address& address,
                                                        std::span<const std::byte> bytes) {
  auto transit = std::make_shared<MessageRequest>();
  transit->rank = from;
  Lock lock(mutex_);
  const bool waits = bytes.size() > kSmallBytes;
  const int process = hosts_.at(static_cast<std::size_t>(address.to));
  if (process != process_) {
    Head head{MessageKind::message, from, address, 0, 0};
    if (waits) unanswered_[head.number = ++answers_] = transit;
    lock.unlock();
    std::vector<std::byte> message = packed(head, bytes);
    lock.lock();
    post(process, std::move(message));
  } else {
    UnreceivedMessage parcel{from, bytes, {}, nullptr, std::nullopt};
    if (waits) {
      parcel.sent = transit;
    } else {
      parcel.copy.assign(bytes.begin(), bytes.end());
      parcel.bytes = parcel.copy;
    }
    deliver(lock, address, std::move(parcel));
  }
  if (!waits) transit->done = true;
  return transit;
}

std::shared_ptr<MessageRequest> InProcessMessages::receive(int from, const Address& address,
                                                           std::span<std::byte> target) {
  auto transit = std::make_shared<MessageRequest>();
  transit->rank = address.to;
  transit->from = from;
  transit->target = target;
  Lock lock(mutex_);
  Box& box = boxes_[address];
  const auto found = std::ranges::find(box.parcels, from, &UnreceivedMessage::from);
  if (found == box.parcels.end()) {
    box.expected.push_back(transit);
    return transit;
  }
  UnreceivedMessage parcel = std::move(*found);
  box.parcels.erase(found);
  complete_receive(lock, *transit, std::move(parcel));
  return transit;
}

void InProcessMessages::deliver(Lock& lock, const Address& address, UnreceivedMessage parcel) {
  Box& box = boxes_[address];
  const auto found = std::ranges::find(box.expected, parcel.from, &MessageRequest::from);
  if (found == box.expected.end()) {
    box.parcels.push_back(std::move(parcel));
    return;
  }
  const std::shared_ptr<MessageRequest> receive = *found;
  box.expected.erase(found);
  complete_receive(lock, *receive, std::move(parcel));
}

/// Copies without the mutex: the two belong to each other from here on.
void InProcessMessages::complete_receive(Lock& lock, MessageRequest& receive, UnreceivedMessage parcel) {
  if (parcel.bytes.size() > receive.target.size()) {
    receive.failure = Failure{ErrorCode::bad_state,
                              compose("a message of {} bytes from rank {} is larger than the {} that were expected",
                                      parcel.bytes.size(), parcel.from, receive.target.size())};
  } else if (!parcel.bytes.empty()) {
    lock.unlock();
    std::memcpy(receive.target.data(), parcel.bytes.data(), parcel.bytes.size());
    lock.lock();
  }
  finish(receive);
  if (parcel.sent) finish(*parcel.sent);
  if (parcel.answer_to) {
    const int process = hosts_[static_cast<std::size_t>(parcel.from)];
    post(process, packed({MessageKind::received, receive.rank, {}, 0, *parcel.answer_to}, {}));
  }
}

void InProcessMessages::finish(MessageRequest& transit) {
  transit.done = true;
  changed(transit.rank).notify_all();
}

void InProcessMessages::post(int process, std::vector<std::byte> message) {
  outgoing_.push_back({process, std::move(message)});
  something_to_send_.notify_one();
}

bool InProcessMessages::test(const MessageRequest& transit) {
  return wait(transit, Deadline::after(std::chrono::seconds(0)));
}

bool InProcessMessages::wait(const MessageRequest& transit, Deadline deadline) {
  WaitTimer wait_timer(deadline);
  Lock lock(mutex_);
  while (!transit.done) {
    if (failure_) throw Error(*failure_);
    if (wait_timer.is_over()) return false;
    if (deadline.finite()) {
      changed(transit.rank).wait_for(lock, wait_timer.slice());
    } else {
      changed(transit.rank).wait(lock);
    }
  }
  if (transit.failure) throw Error(*transit.failure);
  return true;
}

bool InProcessMessages::receive_from_process(std::vector<std::byte> message) {
  Head head;
  invariant(message.size() >= sizeof head, "a message between processes begins with its head");
  std::memcpy(&head, message.data(), sizeof head);
  if (head.kind == MessageKind::all_ended) return true;
  Lock lock(mutex_);
  if (head.kind == MessageKind::received) {
    const auto found = unanswered_.find(head.number);
    invariant(found != unanswered_.end(), "what is answered was sent, and not answered before");
    finish(*found->second);
    unanswered_.erase(found);
    return false;
  }
  UnreceivedMessage parcel{head.from, {}, std::move(message), nullptr, std::nullopt};
  parcel.bytes = std::span<const std::byte>(parcel.copy).subspan(sizeof head);
  if (head.number != 0) parcel.answer_to = head.number;
  deliver(lock, head.address, std::move(parcel));
  return false;
}

std::deque<Outgoing> InProcessMessages::take_outgoing() {
  const Lock lock(mutex_);
  return std::exchange(outgoing_, {});
}

void InProcessMessages::wait_for_work(bool others_may_send) {
  Lock lock(mutex_);
  if (others_may_send) {
    if (outgoing_.empty()) something_to_send_.wait_for(lock, kPause);
  } else {
    something_to_send_.wait(lock, [this] { return ranks_left_ == 0; });
  }
}

void InProcessMessages::announce_end(int process) {
  const Lock lock(mutex_);
  post(process, packed({MessageKind::all_ended, 0, {}, 0, 0}, {}));
}

void InProcessMessages::fail(const std::string& why) {
  const Lock lock(mutex_);
  failure_ = Failure{ErrorCode::rank_failed, why};
  for (auto& [rank, condition] : changed_) condition.notify_all();
}

void InProcessMessages::rank_begins() {
  const Lock lock(mutex_);
  ++ranks_left_;
}

void InProcessMessages::rank_ends() {
  const Lock lock(mutex_);
  --ranks_left_;
  something_to_send_.notify_one();
}

bool InProcessMessages::has_ranks_left() {
  const Lock lock(mutex_);
  return ranks_left_ > 0;
}

}  // namespace kedge::comm

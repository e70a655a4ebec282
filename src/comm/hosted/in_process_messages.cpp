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
constexpr std::chrono::microseconds kPollInterval{100};

enum class MessageKind : std::uint32_t { message, received, all_ended };

/// Before each message from process to process.
struct Head {
  MessageKind kind = MessageKind::message;
  int from = 0;
  MessageAddress address;
  std::uint32_t padding = 0;
  std::uint64_t number = 0;  ///< of a message that is answered when it is received, and of the answer; else 0
};
static_assert(std::is_trivially_copyable_v<Head> && sizeof(Head) == 32, "on the wire between processes of one job");

std::vector<std::byte> pack_message(const Head& head, std::span<const std::byte> bytes) {
  std::vector<std::byte> message(sizeof head + bytes.size());
  std::memcpy(message.data(), &head, sizeof head);
  if (!bytes.empty()) std::memcpy(message.data() + sizeof head, bytes.data(), bytes.size());
  return message;
}

}  // namespace

InProcessMessages::InProcessMessages(std::vector<int> hosts, int process)
    : process_of_rank_(std::move(hosts)), process_(process) {
  for (int rank = 0; rank < size(); ++rank) {
    if (process_of_rank_[static_cast<std::size_t>(rank)] == process_) conditions_[rank];
  }
}

int InProcessMessages::open_channel(int rank) {
  const Lock lock(mutex_);
  return ++channel_counts_[rank];
}

std::shared_ptr<MessageRequest> InProcessMessages::send(int from, const MessageAddress& address,
                                                        std::span<const std::byte> bytes) {
  auto request = std::make_shared<MessageRequest>();
  request->rank = from;
  Lock lock(mutex_);
  const bool waits = bytes.size() > kSmallBytes;
  const int process = process_of_rank_.at(static_cast<std::size_t>(address.to));
  if (process != process_) {
    Head head{MessageKind::message, from, address, 0, 0};
    if (waits) unconfirmed_sends_[head.number = ++last_send_number_] = request;
    lock.unlock();
    std::vector<std::byte> message = pack_message(head, bytes);
    lock.lock();
    post_message(process, std::move(message));
  } else {
    UnreceivedMessage message{from, bytes, {}, nullptr, std::nullopt};
    if (waits) {
      message.send = request;
    } else {
      message.copy.assign(bytes.begin(), bytes.end());
      message.bytes = message.copy;
    }
    deliver_message(lock, address, std::move(message));
  }
  if (!waits) request->is_done = true;
  return request;
}

std::shared_ptr<MessageRequest> InProcessMessages::receive(int from, const MessageAddress& address,
                                                           std::span<std::byte> target) {
  auto request = std::make_shared<MessageRequest>();
  request->rank = address.to;
  request->from = from;
  request->target = target;
  Lock lock(mutex_);
  Mailbox& box = mailboxes_[address];
  const auto found = std::ranges::find(box.messages, from, &UnreceivedMessage::from);
  if (found == box.messages.end()) {
    box.receives.push_back(request);
    return request;
  }
  UnreceivedMessage message = std::move(*found);
  box.messages.erase(found);
  complete_receive(lock, *request, std::move(message));
  return request;
}

void InProcessMessages::deliver_message(Lock& lock, const MessageAddress& address, UnreceivedMessage message) {
  Mailbox& box = mailboxes_[address];
  const auto found = std::ranges::find(box.receives, message.from, &MessageRequest::from);
  if (found == box.receives.end()) {
    box.messages.push_back(std::move(message));
    return;
  }
  const std::shared_ptr<MessageRequest> receive = *found;
  box.receives.erase(found);
  complete_receive(lock, *receive, std::move(message));
}

/// Copies without the mutex: the two belong to each other from here on.
void InProcessMessages::complete_receive(Lock& lock, MessageRequest& receive, UnreceivedMessage message) {
  if (message.bytes.size() > receive.target.size()) {
    receive.failure = Failure{ErrorCode::bad_state,
                              compose("a message of {} bytes from rank {} is larger than the {} that were expected",
                                      message.bytes.size(), message.from, receive.target.size())};
  } else if (!message.bytes.empty()) {
    lock.unlock();
    std::memcpy(receive.target.data(), message.bytes.data(), message.bytes.size());
    lock.lock();
  }
  complete_request(receive);
  if (message.send) complete_request(*message.send);
  if (message.remote_send) {
    const int process = process_of_rank_[static_cast<std::size_t>(message.from)];
    post_message(process, pack_message({MessageKind::received, receive.rank, {}, 0, *message.remote_send}, {}));
  }
}

void InProcessMessages::complete_request(MessageRequest& request) {
  request.is_done = true;
  condition_of_rank(request.rank).notify_all();
}

void InProcessMessages::post_message(int process, std::vector<std::byte> message) {
  outgoing_.push_back({process, std::move(message)});
  work_arrived_.notify_one();
}

bool InProcessMessages::test(const MessageRequest& request) {
  return wait(request, Deadline::after(std::chrono::seconds(0)));
}

bool InProcessMessages::wait(const MessageRequest& request, Deadline deadline) {
  WaitTimer wait_timer(deadline);
  Lock lock(mutex_);
  while (!request.is_done) {
    if (failure_) throw Error(*failure_);
    if (wait_timer.is_over()) return false;
    if (deadline.finite()) {
      condition_of_rank(request.rank).wait_for(lock, wait_timer.slice());
    } else {
      condition_of_rank(request.rank).wait(lock);
    }
  }
  if (request.failure) throw Error(*request.failure);
  return true;
}

bool InProcessMessages::receive_from_process(std::vector<std::byte> message) {
  Head head;
  invariant(message.size() >= sizeof head, "a message between processes begins with its head");
  std::memcpy(&head, message.data(), sizeof head);
  if (head.kind == MessageKind::all_ended) return true;
  Lock lock(mutex_);
  if (head.kind == MessageKind::received) {
    const auto found = unconfirmed_sends_.find(head.number);
    invariant(found != unconfirmed_sends_.end(), "what is answered was sent, and not answered before");
    complete_request(*found->second);
    unconfirmed_sends_.erase(found);
    return false;
  }
  UnreceivedMessage received{head.from, {}, std::move(message), nullptr, std::nullopt};
  received.bytes = std::span<const std::byte>(received.copy).subspan(sizeof head);
  if (head.number != 0) received.remote_send = head.number;
  deliver_message(lock, head.address, std::move(received));
  return false;
}

std::deque<OutgoingMessage> InProcessMessages::take_outgoing() {
  const Lock lock(mutex_);
  return std::exchange(outgoing_, {});
}

void InProcessMessages::wait_for_work(bool others_may_send) {
  Lock lock(mutex_);
  if (others_may_send) {
    if (outgoing_.empty()) work_arrived_.wait_for(lock, kPollInterval);
  } else {
    work_arrived_.wait(lock, [this] { return running_rank_count_ == 0; });
  }
}

void InProcessMessages::announce_end(int process) {
  const Lock lock(mutex_);
  post_message(process, pack_message({MessageKind::all_ended, 0, {}, 0, 0}, {}));
}

void InProcessMessages::fail_all_waits(const std::string& why) {
  const Lock lock(mutex_);
  failure_ = Failure{ErrorCode::rank_failed, why};
  for (auto& [rank, condition] : conditions_) condition.notify_all();
}

void InProcessMessages::begin_rank() {
  const Lock lock(mutex_);
  ++running_rank_count_;
}

void InProcessMessages::end_rank() {
  const Lock lock(mutex_);
  --running_rank_count_;
  work_arrived_.notify_one();
}

bool InProcessMessages::has_running_ranks() {
  const Lock lock(mutex_);
  return running_rank_count_ > 0;
}

}  // namespace kedge::comm

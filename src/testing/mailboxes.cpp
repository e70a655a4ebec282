#include "testing/mailboxes.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "kedge/testing/simulated_death.hpp"

namespace kedge::testing {
namespace {

using Lock = std::unique_lock<std::mutex>;

}  // namespace

void Mailboxes::check_rank(int rank) const {
  if (rank >= 0 && rank < size()) return;
  throw Error(ErrorCode::invalid_argument, compose("there is no rank {}; ranks are 0 to {}", rank, size() - 1));
}

void Mailboxes::plan(int rank, Fault fault) {
  check_rank(rank);
  const Lock lock(mutex_);
  at(rank).fault = fault;
}

void Mailboxes::retire(int rank, RankState life) {
  check_rank(rank);
  const Lock lock(mutex_);
  retire_locked(rank, life);
}

void Mailboxes::wait_until_no_rank_is_live() {
  Lock lock(mutex_);
  all_ended_.wait(lock, [this] { return live_ == 0; });
  released_ = true;
  for (auto& rank : ranks_) rank.released.notify_all();
}

bool Mailboxes::begin_run() {
  const Lock lock(mutex_);
  return !std::exchange(begun_, true);
}

int Mailboxes::next_connection(int rank) {
  check_rank(rank);
  const Lock lock(mutex_);
  return at(rank).connections++;
}

std::uint64_t Mailboxes::messages() const {
  const Lock lock(mutex_);
  return messages_;
}

std::uint64_t Mailboxes::events(int rank) const {
  check_rank(rank);
  const Lock lock(mutex_);
  return ranks_[static_cast<std::size_t>(rank)].events;
}

void Mailboxes::send(int from, int to, int channel, std::span<const std::byte> bytes) {
  Lock lock(mutex_);
  step(lock, from);
  ++messages_;
  auto& receiver = at(to);
  if (receiver.life != RankState::live) return;
  auto& lane = receiver.lanes[{from, channel}];
  if (lane.posted.empty()) {
    lane.arrived.emplace_back(bytes.begin(), bytes.end());
    return;
  }
  auto& receive = *lane.posted.front();
  lane.posted.pop_front();
  Waiter* const waiter = receive.awaited_by;  // its owner may destroy the receive as soon as it is filled
  receive.fill(bytes);
  if (waiter != nullptr && --waiter->missing == 0) end_wait(*waiter, WakeReason::complete);
}

void Mailboxes::post(PostedReceive& receive) {
  const Lock lock(mutex_);
  auto& rank = at(receive.rank);
  check_alive(rank);
  auto& lane = rank.lanes[{receive.from, receive.channel}];
  if (lane.arrived.empty()) {
    lane.posted.push_back(&receive);
    return;
  }
  receive.fill(lane.arrived.front());
  lane.arrived.pop_front();
}

void Mailboxes::withdraw(PostedReceive& receive) {
  const Lock lock(mutex_);
  at(receive.rank).lanes[{receive.from, receive.channel}].posted.remove(&receive);
}

bool Mailboxes::test(Communicator::Request& request, int rank) {
  Lock lock(mutex_);
  check_alive(at(rank));
  if (request == nullptr) return true;
  if (!static_cast<PostedReceive&>(*request).done) return false;
  finish_receive(lock, request, rank);
  return true;
}

WakeReason Mailboxes::wait(std::span<Communicator::Request> requests, int rank, int connection, bool finite) {
  Lock lock(mutex_);
  auto& self = at(rank);
  check_alive(self);
  if (self.interrupted.contains(connection)) return WakeReason::interrupted;
  if (left_.contains(connection)) return WakeReason::left;
  Waiter waiter;
  waiter.connection = connection;
  waiter.finite = finite;
  std::vector<PostedReceive*> awaited;
  for (const auto& request : requests) {
    auto* receive = static_cast<PostedReceive*>(request.get());
    if (receive == nullptr || receive->done) continue;
    receive->awaited_by = &waiter;
    awaited.push_back(receive);
  }
  if (!awaited.empty()) {
    waiter.missing = awaited.size();
    const WakeReason wake = wait_as(lock, self, waiter);
    for (auto* receive : awaited) receive->awaited_by = nullptr;
    if (wake == WakeReason::death) throw SimulatedDeath{};
    if (wake != WakeReason::complete) return wake;
  }
  for (auto& request : requests) {
    if (request != nullptr) finish_receive(lock, request, rank);
  }
  return WakeReason::complete;
}

/// Interrupts current and later waits on a connection.
void Mailboxes::interrupt(int rank, int connection) {
  const Lock lock(mutex_);
  auto& self = at(rank);
  self.interrupted.insert(connection);
  for (Waiter* waiter : self.waiters) {
    if (waiter->waiting && waiter->connection == connection) end_wait(*waiter, WakeReason::interrupted);
  }
}

void Mailboxes::leave(int connection, std::string why) {
  const Lock lock(mutex_);
  left_.try_emplace(connection, std::move(why));
  for (auto& rank : ranks_) {
    for (Waiter* waiter : rank.waiters) {
      if (waiter->waiting && waiter->connection == connection) end_wait(*waiter, WakeReason::left);
    }
  }
}

std::string Mailboxes::why_left(int connection) const {
  const Lock lock(mutex_);
  return left_.at(connection);
}

void Mailboxes::raise(SignalState& signal) {
  const Lock lock(mutex_);
  if (signal.waiter == nullptr || !signal.waiter->waiting) signal.raised = true;
  else end_wait(*signal.waiter, WakeReason::complete);
}

WakeReason Mailboxes::wait(SignalState& signal, int rank, bool finite) {
  Lock lock(mutex_);
  auto& self = at(rank);
  check_alive(self);
  if (std::exchange(signal.raised, false)) return WakeReason::complete;
  Waiter waiter;
  waiter.connection = -1;
  waiter.finite = finite;
  signal.waiter = &waiter;
  const WakeReason wake = wait_as(lock, self, waiter);
  signal.waiter = nullptr;
  if (wake == WakeReason::death) throw SimulatedDeath{};
  return wake;
}

WakeReason Mailboxes::wait_as(Lock& lock, Rank& rank, Waiter& self) {
  rank.waiters.push_back(&self);
  ++waiting_;
  resolve_quiescence();
  self.changed.wait(lock, [&self] { return !self.waiting; });
  rank.waiters.remove(&self);
  return self.wake;
}

void Mailboxes::thread_begins(int rank) {
  const Lock lock(mutex_);
  auto& self = at(rank);
  check_alive(self);
  ++self.threads;
  ++threads_;
}

void Mailboxes::thread_ends(int rank) {
  const Lock lock(mutex_);
  auto& self = at(rank);
  if (self.life != RankState::live) return;
  --self.threads;
  --threads_;
  resolve_quiescence();
}

void Mailboxes::check_alive(const Rank& rank) const {
  if (rank.life == RankState::live) return;
  if (rank.life != RankState::finished) throw SimulatedDeath{};
  throw Error(ErrorCode::bad_state, "this rank's thread has ended; communicate only inside run");
}

/// Counts an event of a rank, or triggers the fault planned for it.
void Mailboxes::step(Lock& lock, int rank) {
  auto& self = at(rank);
  check_alive(self);
  if (!self.fault || self.events < self.fault->event) {
    ++self.events;
    return;
  }
  if (self.fault->kind == StopKind::stop) {
    retire_locked(rank, RankState::stopped);
    self.released.wait(lock, [this] { return released_; });
  } else {
    retire_locked(rank, RankState::dead);
  }
  throw SimulatedDeath{};
}

void Mailboxes::finish_receive(Lock& lock, Communicator::Request& request, int rank) {
  step(lock, rank);
  const auto& receive = static_cast<const PostedReceive&>(*request);
  if (!receive.fits()) {
    throw Error(
        ErrorCode::bad_state,
        compose("rank {} expected {} bytes from rank {} on channel {} and got {}; send and receive sizes must match",
                rank, receive.expected_bytes(), receive.from, receive.channel % comm::kChannelLimit,
                receive.received_bytes));
  }
  request.reset();
}

/// A message may still arrive before the thread notices the end of its wait.
void Mailboxes::end_wait(Waiter& waiter, WakeReason wake) {
  if (!waiter.waiting) return;
  waiter.wake = wake;
  waiter.waiting = false;
  --waiting_;
  waiter.changed.notify_all();
}

void Mailboxes::retire_locked(int rank, RankState life) {
  auto& self = at(rank);
  if (self.life != RankState::live) return;
  self.life = life;
  --live_;
  threads_ -= self.threads;
  for (Waiter* waiter : self.waiters) {
    if (waiter->waiting) end_wait(*waiter, WakeReason::death);
  }
  resolve_quiescence();
}

void Mailboxes::resolve_quiescence() {
  if (live_ == 0) all_ended_.notify_all();
  if (live_ == 0 || waiting_ < threads_) return;
  std::vector<Waiter*> all;
  for (const auto& rank : ranks_) {
    for (Waiter* waiter : rank.waiters) {
      if (waiter->waiting) all.push_back(waiter);
    }
  }
  const auto chosen = std::ranges::find_if(all, [](const Waiter* waiter) { return waiter->finite; });
  if (chosen != all.end()) return end_wait(**chosen, WakeReason::timeout);
  for (Waiter* waiter : all) end_wait(*waiter, WakeReason::deadlock);
}

}  // namespace kedge::testing

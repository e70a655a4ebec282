#include "kedge/testing/in_process_world.hpp"

#include <system_error>
#include <thread>
#include <utility>

#include "base/attempt.hpp"
#include "base/text.hpp"
#include "comm/channels.hpp"
#include "comm/checked_communicator.hpp"
#include "comm/tree_collectives.hpp"
#include "kedge/testing/simulated_death.hpp"
#include "testing/mailboxes.hpp"

namespace kedge::testing {
namespace {

/// Waits in virtual time; a dead rank's wait ends at once.
class VirtualSignal final : public Communicator::Signal {
 public:
  VirtualSignal(std::shared_ptr<Mailboxes> mailboxes, int rank) : mailboxes_(std::move(mailboxes)), rank_(rank) {}
  void raise() noexcept override { mailboxes_->raise(state_); }
  [[nodiscard]] bool wait(Deadline deadline) override {
    const auto wake = mailboxes_->wait(state_, rank_, deadline.finite());
    if (wake == WakeReason::deadlock)
      throw Error(ErrorCode::bad_state, "deadlock: all threads wait without a deadline");
    return wake == WakeReason::complete;
  }

 private:
  std::shared_ptr<Mailboxes> mailboxes_;
  int rank_;
  SignalState state_;
};

/// A thread in virtual time, which dies with its rank.
class VirtualThread final : public Communicator::Thread {
 public:
  VirtualThread(const std::shared_ptr<Mailboxes>& mailboxes, int rank, std::function<void()> body) {
    mailboxes->thread_begins(rank);
    try {
      thread_ = std::jthread([mailboxes, rank, body = std::move(body)] {
        try {
          body();
        } catch (const SimulatedDeath&) {
          mailboxes->retire(rank, RankState::dead);
        }
        mailboxes->thread_ends(rank);
      });
    } catch (const std::system_error&) {
      mailboxes->thread_ends(rank);
      throw;
    }
  }
  [[nodiscard]] bool join(Deadline /*deadline*/) override {
    if (thread_.joinable()) thread_.join();
    return true;
  }

 private:
  std::jthread thread_;
};

/// The communicator of one rank.
class Endpoint final : public comm::CheckedCommunicator {
 public:
  Endpoint(std::shared_ptr<Mailboxes> mailboxes, int rank)
      : CheckedCommunicator(rank, mailboxes->size()), mailboxes_(std::move(mailboxes)) {}

  void connect(Deadline deadline) override {
    require_unconnected();
    set_connected();
    connection_ = mailboxes_->next_connection(rank());
    comm::tree_barrier(*this, deadline);
  }
  [[nodiscard]] std::unique_ptr<Communicator> duplicate(Deadline deadline) override {
    require_usable();
    auto copy = std::make_unique<Endpoint>(mailboxes_, rank());
    copy->connect(deadline);
    return copy;
  }
  [[nodiscard]] std::string name() const override { return {}; }
  [[nodiscard]] std::string launch() const override { return mailboxes_->launch; }
  [[nodiscard]] ThreadSupport thread_support() const noexcept override { return mailboxes_->thread_support; }

  [[nodiscard]] Request send(int to, int channel, std::span<const std::byte> bytes) override {
    require_usable();
    require_peer_and_channel(to, channel);
    mailboxes_->send(rank(), to, lane(channel), bytes);
    return nullptr;
  }
  [[nodiscard]] Request receive(int from, int channel, std::span<std::byte> bytes) override {
    require_usable();
    require_peer_and_channel(from, channel);
    auto operation = std::make_unique<PostedReceive>(mailboxes_, rank(), from, lane(channel), bytes);
    mailboxes_->post(*operation);
    return operation;
  }
  [[nodiscard]] bool test(Request& request) override {
    require_usable();
    return mailboxes_->test(request, rank());
  }
  void wait(std::span<Request> requests, Deadline deadline) override {
    require_usable();
    const auto wake = mailboxes_->wait(requests, rank(), connection_, deadline.finite());
    if (wake == WakeReason::complete) return;
    set_ended();
    if (wake == WakeReason::left) throw Error(ErrorCode::rank_failed, mailboxes_->why_left(connection_));
    if (wake == WakeReason::interrupted) throw Error(ErrorCode::timeout, "this communicator was interrupted");
    if (wake == WakeReason::deadlock) {
      throw Error(ErrorCode::bad_state, compose("deadlock: all ranks wait without a deadline, rank {} for {}", rank(),
                                                missing_peers(requests)));
    }
    throw_timeout(missing_peers(requests), deadline);
  }

  void all_reduce(std::span<std::uint64_t> values, Reduction reduction, Deadline deadline,
                  std::span<const int> group) override {
    comm::tree_all_reduce(*this, values, reduction, deadline, group);
  }
  void broadcast(std::span<std::byte> bytes, int root, Deadline deadline, std::span<const int> group) override {
    comm::tree_broadcast(*this, bytes, root, deadline, group);
  }
  void barrier(Deadline deadline, std::span<const int> group) override { comm::tree_barrier(*this, deadline, group); }
  [[nodiscard]] std::vector<Message> sparse_exchange(std::vector<Message> messages, Deadline deadline) override {
    for (const auto& message : messages) require_peer(message.peer);
    return comm::routed_sparse_exchange(*this, std::move(messages), deadline);
  }
  void interrupt() noexcept override { mailboxes_->interrupt(rank(), connection_); }
  void leave(std::string_view why) noexcept override {
    set_ended();
    (void)attempt([&] { mailboxes_->leave(connection_, std::string(why)); });
  }
  [[nodiscard]] std::unique_ptr<Signal> signal() override {
    return std::make_unique<VirtualSignal>(mailboxes_, rank());
  }
  [[nodiscard]] std::unique_ptr<Thread> start_thread(std::function<void()> body) override {
    return std::make_unique<VirtualThread>(mailboxes_, rank(), std::move(body));
  }

 private:
  /// Lane of a channel, among the channels of all communicators of a rank.
  [[nodiscard]] int lane(int channel) const noexcept { return connection_ * comm::kChannelLimit + channel; }
  static std::string missing_peers(std::span<const Request> requests) {
    std::string text;
    for (const auto& request : requests) {
      const auto* receive = static_cast<const PostedReceive*>(request.get());
      if (receive == nullptr || receive->done) continue;
      text += compose("{}rank {}", text.empty() ? "" : ", ", receive->from);
    }
    return text;
  }

  std::shared_ptr<Mailboxes> mailboxes_;
  int connection_ = 0;
};

}  // namespace

InProcessWorld::InProcessWorld(int ranks, ThreadSupport thread_support) {
  if (ranks < 1) throw Error(ErrorCode::invalid_argument, compose("a world of {} ranks; give at least one", ranks));
  mailboxes_ = std::make_shared<Mailboxes>(ranks, thread_support);
}

InProcessWorld::~InProcessWorld() = default;

int InProcessWorld::size() const noexcept { return mailboxes_->size(); }

std::unique_ptr<Communicator> InProcessWorld::communicator(int rank) {
  mailboxes_->check_rank(rank);
  return std::make_unique<Endpoint>(mailboxes_, rank);
}

void InProcessWorld::stop_at(int rank, std::uint64_t event, StopKind kind) { mailboxes_->plan(rank, {event, kind}); }

void InProcessWorld::mark_dead(int rank) { mailboxes_->retire(rank, RankState::dead); }

std::uint64_t InProcessWorld::messages() const { return mailboxes_->messages(); }

std::uint64_t InProcessWorld::events(int rank) const { return mailboxes_->events(rank); }

std::vector<RankOutcome> InProcessWorld::run(const std::function<void(int rank)>& body) {
  if (!mailboxes_->begin_run()) throw Error(ErrorCode::bad_state, "this world has run; create a new one for each run");
  std::vector<RankOutcome> outcomes(static_cast<std::size_t>(size()));
  const auto live = [&](int rank) {
    auto& outcome = outcomes[static_cast<std::size_t>(rank)];
    try {
      body(rank);
    } catch (const SimulatedDeath&) {
      outcome.died = true;
    } catch (const Error& error) {
      outcome.failure = error.failure();
      outcome.exception = std::current_exception();
    } catch (const std::exception&) {
      outcome.exception = std::current_exception();
    }
    mailboxes_->retire(rank, outcome.died ? RankState::dead : RankState::finished);
  };
  std::vector<std::jthread> threads;
  threads.reserve(outcomes.size());
  try {
    for (int rank = 0; rank < size(); ++rank) threads.emplace_back(live, rank);
  } catch (const std::system_error&) {
    // Running threads must not wait for threads that were never started; the vector joins them.
    for (int rank = 0; rank < size(); ++rank) mailboxes_->retire(rank, RankState::dead);
    mailboxes_->wait_until_no_rank_is_live();
    throw;
  }
  mailboxes_->wait_until_no_rank_is_live();
  threads.clear();
  return outcomes;
}

std::vector<RankOutcome> InProcessWorld::run_connected(const std::function<void(Communicator&)>& body) {
  return run([&](int rank) {
    const auto connected = communicator(rank);
    connected->connect(Deadline::after(std::chrono::hours(1)));
    body(*connected);
  });
}

}  // namespace kedge::testing

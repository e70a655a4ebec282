#include "comm/hosted/hosted_ranks.hpp"

#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "base/attempt.hpp"
#include "base/text.hpp"
#include "comm/hosted/in_process_messages.hpp"
#include "comm/vote.hpp"
#include "kedge/error.hpp"

namespace kedge::comm {
namespace {

class HostedTransfer final : public Transport::Transfer {
 public:
  HostedTransfer(std::shared_ptr<InProcessMessages> mail, std::shared_ptr<MessageRequest> request)
      : messages_(std::move(mail)), request_(std::move(request)) {}
  [[nodiscard]] bool test() override { return messages_->test(*request_); }
  [[nodiscard]] bool wait(Deadline deadline) override { return messages_->wait(*request_, deadline); }

 private:
  std::shared_ptr<InProcessMessages> messages_;
  std::shared_ptr<MessageRequest> request_;
};

class HostedTransport final : public Transport {
 public:
  HostedTransport(std::shared_ptr<InProcessMessages> mail, int rank, int channel, std::string library)
      : messages_(std::move(mail)), rank_(rank), channel_(channel), library_(std::move(library)) {}

  [[nodiscard]] int rank() const noexcept override { return rank_; }
  [[nodiscard]] int size() const noexcept override { return messages_->size(); }
  [[nodiscard]] std::string library() const override { return library_; }
  [[nodiscard]] std::unique_ptr<Transport> open_channel(Deadline /*deadline*/) override {
    return std::make_unique<HostedTransport>(messages_, rank_, messages_->open_channel(rank_), library_);
  }
  [[nodiscard]] std::unique_ptr<Transfer> send(int to, int tag, std::span<const std::byte> bytes) override {
    return transfer(messages_->send(rank_, {to, channel_, tag}, bytes));
  }
  [[nodiscard]] std::unique_ptr<Transfer> receive(int from, int tag, std::span<std::byte> bytes) override {
    return transfer(messages_->receive(from, {rank_, channel_, tag}, bytes));
  }
  /// Fails the ranks of this process; ranks of other processes wait for their deadline.
  void leave(std::string_view why) noexcept override {
    (void)attempt([&] { messages_->fail_all_waits(std::string(why)); });
  }

 private:
  [[nodiscard]] std::unique_ptr<Transfer> transfer(std::shared_ptr<MessageRequest> request) const {
    return std::make_unique<HostedTransfer>(messages_, std::move(request));
  }

  std::shared_ptr<InProcessMessages> messages_;
  int rank_;
  int channel_;
  std::string library_;
};

}  // namespace

HostedRanks::HostedRanks(std::vector<int> hosts, ProcessLink* link) : process_of_rank_(std::move(hosts)), link_(link) {
  const int process = link_ == nullptr ? 0 : link_->process();
  for (std::size_t rank = 0; rank < process_of_rank_.size(); ++rank) {
    if (process_of_rank_[rank] == process) ranks_.push_back(static_cast<int>(rank));
  }
  messages_ = std::make_shared<InProcessMessages>(process_of_rank_, process);
}

HostedRanks::~HostedRanks() = default;

std::vector<std::exception_ptr> HostedRanks::run(
    const std::function<void(int rank, std::unique_ptr<Transport> transport)>& body,
    std::chrono::duration<double> leave_timeout) {
  std::vector<std::exception_ptr> thrown(ranks_.size());
  const std::string library = link_ == nullptr ? "threads of one process" : link_->library();
  std::optional<std::system_error> no_thread;
  std::vector<std::jthread> threads;
  for (std::size_t index = 0; index < ranks_.size() && !no_thread; ++index) {
    messages_->begin_rank();
    try {
      threads.emplace_back([&, index] {
        try {
          body(ranks_[index], std::make_unique<HostedTransport>(messages_, ranks_[index], 0, library));
        } catch (...) {
          thrown[index] = std::current_exception();
        }
        messages_->end_rank();
      });
    } catch (const std::system_error& error) {
      messages_->end_rank();
      no_thread = error;
      messages_->fail_all_waits(
          compose("no thread could be created for each rank ({}); raise the limit (ulimit -u), or use more "
                  "processes",
                  error.what()));
    }
  }
  std::optional<WaitTimer> wait_timer;
  while (!progress()) {
    messages_->wait_for_work(link_ != nullptr);
    if (messages_->has_running_ranks() || link_ == nullptr) continue;
    if (!wait_timer) wait_timer.emplace(Deadline::after(leave_timeout));
    if (wait_timer->is_over()) {
      threads.clear();
      throw Error(ErrorCode::rank_failed, "the ranks of another process have not ended; check what delays it");
    }
  }
  wait_timer.reset();
  threads.clear();
  if (no_thread) throw std::system_error(*no_thread);
  return thrown;
}

/// One turn of what goes from process to process. True when no rank of any process is left.
bool HostedRanks::progress() {
  if (link_ == nullptr || has_link_failed_) return !messages_->has_running_ranks();
  bool is_over = false;
  const auto failure = attempt([&] {
    for (OutgoingMessage& one : messages_->take_outgoing()) link_->send(one.process, std::move(one.message));
    while (auto message = link_->receive()) {
      if (messages_->receive_from_process(*std::move(message))) ++ended_process_count_;
    }
    is_over = all_processes_ended();
  });
  if (!failure) return is_over;
  has_link_failed_ = true;
  messages_->fail_all_waits(to_string(*failure));
  return !messages_->has_running_ranks();
}

/// No process goes while another one may still send to it.
bool HostedRanks::all_processes_ended() {
  if (messages_->has_running_ranks()) return false;
  if (!std::exchange(has_left_, true)) {
    for (int process = 0; process < link_->process_count(); ++process) {
      if (process != link_->process()) messages_->announce_end(process);
    }
    return false;
  }
  return ended_process_count_ == link_->process_count() - 1 && link_->is_idle();
}

void rethrow_cause(std::span<const std::exception_ptr> thrown) {
  std::exception_ptr consequence;
  for (const std::exception_ptr& one : thrown) {
    if (!one) continue;
    try {
      std::rethrow_exception(one);
    } catch (const Error& error) {
      if (!ends_communication(error.code())) throw;
      if (!consequence) consequence = one;
    }
  }
  if (consequence) std::rethrow_exception(consequence);
}

}  // namespace kedge::comm

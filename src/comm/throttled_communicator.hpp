// A communicator that delays messages.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kedge/communicator.hpp"

namespace kedge::comm {

/// Called before a message of so many bytes is sent, and with 0 before one is received. Returns when it may go.
using BeforeMessage = std::function<void(std::uint64_t sent_bytes)>;

/// Delays messages from rank to rank, which carry all bulk data; collective calls go at once.
class ThrottledCommunicator final : public Communicator {
 public:
  /// `inner` must be connected.
  ThrottledCommunicator(std::unique_ptr<Communicator> inner, BeforeMessage before)
      : inner_(std::move(inner)), before_message_(std::move(before)) {}

  void connect(Deadline deadline) override { inner_->connect(deadline); }
  [[nodiscard]] std::unique_ptr<Communicator> duplicate(Deadline deadline) override {
    return inner_->duplicate(deadline);
  }
  [[nodiscard]] int rank() const noexcept override { return inner_->rank(); }
  [[nodiscard]] int size() const noexcept override { return inner_->size(); }
  [[nodiscard]] std::string name() const override { return inner_->name(); }
  [[nodiscard]] std::string library() const override { return inner_->library(); }
  [[nodiscard]] std::string start_warning() const override { return inner_->start_warning(); }
  [[nodiscard]] std::string launch() const override { return inner_->launch(); }
  [[nodiscard]] ThreadSupport thread_support() const noexcept override { return inner_->thread_support(); }

  [[nodiscard]] Request send(int to, int channel, std::span<const std::byte> bytes) override {
    before_message_(bytes.size());
    return inner_->send(to, channel, bytes);
  }
  [[nodiscard]] Request receive(int from, int channel, std::span<std::byte> bytes) override {
    before_message_(0);
    return inner_->receive(from, channel, bytes);
  }
  [[nodiscard]] bool test(Request& request) override { return inner_->test(request); }
  void wait(std::span<Request> requests, Deadline deadline) override { inner_->wait(requests, deadline); }

  void all_reduce(std::span<std::uint64_t> values, Reduction reduction, Deadline deadline,
                  std::span<const int> group) override {
    inner_->all_reduce(values, reduction, deadline, group);
  }
  void broadcast(std::span<std::byte> bytes, int root, Deadline deadline, std::span<const int> group) override {
    inner_->broadcast(bytes, root, deadline, group);
  }
  void barrier(Deadline deadline, std::span<const int> group) override { inner_->barrier(deadline, group); }
  [[nodiscard]] std::vector<Message> sparse_exchange(std::vector<Message> messages, Deadline deadline) override {
    return inner_->sparse_exchange(std::move(messages), deadline);
  }
  void interrupt() noexcept override { inner_->interrupt(); }
  void leave(std::string_view why) noexcept override { inner_->leave(why); }
  [[nodiscard]] std::unique_ptr<Signal> signal() override { return inner_->signal(); }
  [[nodiscard]] std::unique_ptr<Thread> start_thread(std::function<void()> body) override {
    return inner_->start_thread(std::move(body));
  }

 private:
  std::unique_ptr<Communicator> inner_;
  BeforeMessage before_message_;
};

}  // namespace kedge::comm

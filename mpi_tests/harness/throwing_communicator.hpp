// A rank that throws, in a call for messages, what is not an Error.
#pragma once

#include <memory>
#include <new>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "harness/forwarding_communicator.hpp"

namespace kedge::testing {

/// Throws at one of its calls, before it has done anything, or when it has.
class ThrowingCommunicator final : public ForwardingCommunicator {
 public:
  struct Plan {
    int call = 0;  ///< counted down
    bool afterwards = false;
    bool has_thrown = false;
  };
  ThrowingCommunicator(std::unique_ptr<Communicator> inner, std::shared_ptr<Plan> plan)
      : ForwardingCommunicator(*inner), owned_(std::move(inner)), plan_(std::move(plan)) {}

  [[nodiscard]] std::unique_ptr<Communicator> duplicate(Deadline deadline) override {
    return std::make_unique<ThrowingCommunicator>(inner().duplicate(deadline), plan_);
  }
  [[nodiscard]] Request send(int to, int channel, std::span<const std::byte> bytes) override {
    const bool throws = is_planned();
    auto result = inner().send(to, channel, bytes);
    if (throws) throw std::length_error("vector::_M_default_append");
    return result;
  }
  void wait(std::span<Request> requests, Deadline deadline) override {
    const bool throws = is_planned();
    inner().wait(requests, deadline);
    if (throws) throw std::length_error("vector::_M_default_append");
  }
  void all_reduce(std::span<std::uint64_t> values, Reduction reduction, Deadline deadline,
                  std::span<const int> group) override {
    const bool throws = is_planned();
    inner().all_reduce(values, reduction, deadline, group);
    if (throws) throw std::length_error("vector::_M_default_append");
  }
  void broadcast(std::span<std::byte> bytes, int root, Deadline deadline, std::span<const int> group) override {
    const bool throws = is_planned();
    inner().broadcast(bytes, root, deadline, group);
    if (throws) throw std::length_error("vector::_M_default_append");
  }
  [[nodiscard]] std::vector<Message> sparse_exchange(std::vector<Message> messages, Deadline deadline) override {
    const bool throws = is_planned();
    auto result = inner().sparse_exchange(std::move(messages), deadline);
    if (throws) throw std::length_error("vector::_M_default_append");
    return result;
  }

 private:
  [[nodiscard]] bool is_planned() {
    const bool is_this = --plan_->call == 0;
    if (!is_this) return false;
    plan_->has_thrown = true;
    if (!plan_->afterwards) throw std::bad_alloc();
    return true;
  }

  std::unique_ptr<Communicator> owned_;
  std::shared_ptr<Plan> plan_;
};

}  // namespace kedge::testing

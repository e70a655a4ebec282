// A communicator that a test sees at work: what ranks decide together goes through votes and broadcasts.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <utility>

#include "harness/forwarding_communicator.hpp"

namespace kedge::testing {

class WatchedCommunicator final : public ForwardingCommunicator {
 public:
  /// `before` is called before each reduction and broadcast, with how long that may take.
  WatchedCommunicator(std::unique_ptr<Communicator> inner, std::function<void(Deadline)> before)
      : ForwardingCommunicator(*inner), owned_(std::move(inner)), before_(std::move(before)) {}

  void all_reduce(std::span<std::uint64_t> values, Reduction reduction, Deadline deadline,
                  std::span<const int> group) override {
    before_(deadline);
    inner().all_reduce(values, reduction, deadline, group);
  }
  void broadcast(std::span<std::byte> bytes, int root, Deadline deadline, std::span<const int> group) override {
    before_(deadline);
    inner().broadcast(bytes, root, deadline, group);
  }

 private:
  std::unique_ptr<Communicator> owned_;
  std::function<void(Deadline)> before_;
};

}  // namespace kedge::testing

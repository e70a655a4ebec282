// A communicator that an application gave a name.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "harness/forwarding_communicator.hpp"

namespace kedge::faults {

/// Like the one within, but for the name; which launch it belongs to is left to the environment.
class NamedCommunicator final : public kedge::testing::ForwardingCommunicator {
 public:
  NamedCommunicator(std::unique_ptr<Communicator> inner, std::string name)
      : ForwardingCommunicator(*inner), own_(std::move(inner)), name_(std::move(name)) {}
  [[nodiscard]] std::string name() const override { return name_; }

 private:
  std::unique_ptr<Communicator> own_;
  std::string name_;
};

}  // namespace kedge::faults

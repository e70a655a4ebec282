// What every Communicator must do, as checks that any of them can be put through.
#pragma once

#include <functional>
#include <ostream>
#include <span>
#include <string>

#include "kedge/communicator.hpp"

namespace kedge::comm::contract {

/// One check, run on all ranks together with a connected communicator of any size from 1 to 8.
struct Case {
  std::string name;
  std::function<void(Communicator&)> check;
};

[[nodiscard]] std::span<const Case> cases();

/// Far more than any check takes.
[[nodiscard]] Deadline soon();

inline void PrintTo(const Case& which, std::ostream* out) { *out << which.name; }  // for GoogleTest

}  // namespace kedge::comm::contract

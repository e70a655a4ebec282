// Identity of a run and its start.
#pragma once

#include <cstdint>
#include <string>

#include "kedge/types.hpp"

namespace kedge::commits {

/// Equal on every rank.
struct RunIdentity {
  std::string name;
  Id128 id;                       ///< drawn at the run's first start
  std::uint64_t incarnation = 0;  ///< number of this start
};

}  // namespace kedge::commits

// Whether all nodes were told where their stores are to lie.
#pragma once

#include <string>

#include "base/log.hpp"
#include "comm/group.hpp"

namespace kedge::start {

/// Root of one rank's stores: as it was given, and what it became.
struct GivenRoot {
  bool is_given = false;  ///< store.path is set
  bool counts = false;    ///< once a node
  std::string node;       ///< for people
  std::string directory;  ///< where its stores lie
};

/// COLLECTIVE. Warns if store.path is set for some nodes and not for others: some launchers pass the environment to one
/// node only, and the default place of the others may be small, or be emptied.
void warn_of_missing_roots(const comm::Group& group, const GivenRoot& mine, const Log& log);

}  // namespace kedge::start

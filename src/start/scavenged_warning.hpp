// Warnings of a start about stores that `kedge scavenge` has copied to the prefix, and not flushed.
#pragma once

#include <string>

#include "start/start.hpp"

namespace kedge::start {

/// Local, rank 0. No start looks into what was copied before it was complete: it warns, and says how to use it.
void warn_of_scavenged_stores(const Setup& setup, const Started& started, const std::string& prefix);

}  // namespace kedge::start

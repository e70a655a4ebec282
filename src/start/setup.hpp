// Arguments of an engine.
#pragma once

#include "base/log.hpp"
#include "kedge/options.hpp"
#include "start/environment.hpp"

namespace kedge::start {

/// Constant while the engine lives.
struct Setup {
  Options options;
  Environment environment;
  Log log;
};

}  // namespace kedge::start

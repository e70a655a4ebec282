// Arguments of an engine.
#pragma once

#include "base/log.hpp"
#include "engine/environment.hpp"
#include "kedge/options.hpp"

namespace kedge::engine {

/// Constant while the engine lives.
struct Setup {
  Options options;
  Environment environment;
  Log log;
};

}  // namespace kedge::engine

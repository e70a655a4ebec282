// C calls for the engine's counters.
#include "kedge/counters.hpp"
#include "bindings/c/failure.hpp"
#include "bindings/c/handle.hpp"
#include "kedge/kedge.h"

namespace {

// Compiled into programs: add fields in `reserved`, never beyond.
static_assert(sizeof(kedge_counters) == 256);

kedge_counters to_c(const kedge::Counters& counters) {
  return {.commits = counters.commits,
          .commits_failed = counters.commits_failed,
          .protections = counters.protections,
          .protections_failed = counters.protections_failed,
          .flushes = counters.flushes,
          .flushes_failed = counters.flushes_failed,
          .flush_retries = counters.flush_retries,
          .retired = counters.retired,
          .opens = counters.opens,
          .pending = counters.pending,
          .saved_bytes = counters.saved_bytes,
          .protected_bytes = counters.protected_bytes,
          .flushed_bytes = counters.flushed_bytes,
          .fetched_bytes = counters.fetched_bytes,
          .blocked_s = counters.blocked_s,
          .blocked_last_s = counters.blocked_last_s,
          .protected_last_s = counters.protected_last_s,
          .protected_max_s = counters.protected_max_s,
          .persistent_last_s = counters.persistent_last_s,
          .persistent_max_s = counters.persistent_max_s,
          .reserved = {}};
}

}  // namespace

using namespace kedge;  // NOLINT(google-build-using-namespace): the definitions below are in the global namespace

extern "C" {

kedge_error kedge_get_counters(const kedge_engine* engine, kedge_counters* counters) {
  if (engine == nullptr) return bindings::null_engine_error("kedge_get_counters");
  if (counters == nullptr) return bindings::refuse("kedge_get_counters: counters must not be NULL");
  return bindings::run_and_catch([&] { *counters = to_c(engine->engine.counters()); });
}

}  // extern "C"

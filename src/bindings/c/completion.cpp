// C calls that wait for a commit's level, or register a callback for it.
#include <chrono>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>

#include "base/text.hpp"
#include "bindings/c/failure.hpp"
#include "bindings/c/handle.hpp"
#include "kedge/types.hpp"

namespace kedge::bindings {
namespace {

/// Throws Error{invalid_argument} for an invalid tag or level.
void check(const char* call, const char* tag, kedge_level level) {
  if (tag == nullptr) throw_argument(compose("{}: tag must not be NULL", call));
  if (level < KEDGE_LEVEL_SNAPSHOT || level > KEDGE_LEVEL_PERSISTENT) {
    throw_argument(compose("{}: level must be snapshot, local, protected or persistent", call));
  }
}

}  // namespace
}  // namespace kedge::bindings

using namespace kedge;  // NOLINT(google-build-using-namespace): the definitions below are in the global namespace

extern "C" {

kedge_error kedge_wait(kedge_engine* engine, const char* tag, kedge_level level) {
  if (engine == nullptr) return bindings::null_engine_error("kedge_wait");
  if (const auto problem = attempt([&] { bindings::check("kedge_wait", tag, level); })) {
    return bindings::refuse_on_all_ranks(*problem, [&] { engine->engine.wait(bindings::kUnusableTag, Level::local); });
  }
  return bindings::run_and_catch([&] { engine->engine.wait(tag, static_cast<Level>(level)); });
}

kedge_error kedge_wait_for(kedge_engine* engine, const char* tag, kedge_level level, double seconds, int* reached) {
  if (engine == nullptr) return bindings::null_engine_error("kedge_wait_for");
  const auto problem = attempt([&] {
    bindings::check("kedge_wait_for", tag, level);
    if (std::isnan(seconds)) bindings::throw_argument("kedge_wait_for: seconds must be a number");
    if (reached == nullptr) bindings::throw_argument("kedge_wait_for: reached must not be NULL");
  });
  if (problem) {
    return bindings::refuse_on_all_ranks(*problem, [&] {
      (void)engine->engine.wait_for(bindings::kUnusableTag, Level::local, std::chrono::seconds(0));
    });
  }
  return bindings::run_and_catch([&] {
    *reached = engine->engine.wait_for(tag, static_cast<Level>(level), std::chrono::duration<double>(seconds)) ? 1 : 0;
  });
}

kedge_error kedge_on_complete(kedge_engine* engine, const char* tag, kedge_level level,
                              kedge_on_complete_callback callback, void* context) {
  if (engine == nullptr) return bindings::null_engine_error("kedge_on_complete");
  return bindings::run_and_catch([&] {
    bindings::check("kedge_on_complete", tag, level);
    if (callback == nullptr) bindings::throw_argument("kedge_on_complete: callback must not be NULL");
    engine->engine.on_complete(tag, static_cast<Level>(level), [=](const std::optional<Failure>& failure) {
      if (!failure) return callback(context, KEDGE_OK, nullptr);
      callback(context, static_cast<kedge_error>(failure->code), to_string(*failure).c_str());
    });
  });
}

}  // extern "C"

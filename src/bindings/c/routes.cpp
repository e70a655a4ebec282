// C calls for files of the application.
#include <string>

#include "base/text.hpp"
#include "bindings/c/failure.hpp"
#include "bindings/c/handle.hpp"

namespace kedge::bindings {
namespace {

/// A caller's buffer for a path, which must not be truncated: the application would write another file.
struct Place {
  char* buffer;
  std::size_t size;
  std::size_t* length;
};

/// `route` calls the engine with a name. If the arguments are invalid, it is called with a name that the engine
/// refuses: commit or close then fails on all ranks.
template <class Route>
void give_route(const char* call, const char* name, const Place& place, Route&& route) {
  if (name == nullptr || place.buffer == nullptr) {
    (void)route("");
    throw_argument(compose("{}: name and path must not be NULL", call));
  }
  const Routed routed = route(name);
  if (!routed.status) throw Error(routed.status.failure());
  if (routed.path.size() >= place.size) {
    (void)route("");
    throw_argument(compose("{}: the path of '{}' has {} bytes and its buffer {}; give one of KEDGE_PATH_SIZE", call,
                           name, routed.path.size() + 1, place.size));
  }
  copy_text(routed.path, place.buffer, place.size, place.length);
}

}  // namespace
}  // namespace kedge::bindings

using namespace kedge;

extern "C" {

kedge_error kedge_route_out(kedge_engine* engine, const char* name, uint64_t max_bytes, char* path, size_t size,
                            size_t* length) {
  if (engine == nullptr) return bindings::null_engine_error("kedge_route_out");
  return bindings::run_and_catch([&] {
    bindings::give_route("kedge_route_out", name, {path, size, length},
                         [&](const char* known) { return engine->engine.route_out(known, max_bytes); });
  });
}

kedge_error kedge_route_in(kedge_engine* engine, const char* name, char* path, size_t size, size_t* length) {
  if (engine == nullptr) return bindings::null_engine_error("kedge_route_in");
  return bindings::run_and_catch([&] {
    bindings::give_route("kedge_route_in", name, {path, size, length},
                         [&](const char* known) { return engine->engine.route_in(known); });
  });
}

}  // extern "C"

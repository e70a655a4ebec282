// C calls that read a checkpoint: open, load, close.
#include <optional>
#include <span>
#include <string>

#include "base/text.hpp"
#include "bindings/c/failure.hpp"
#include "bindings/c/handle.hpp"
#include "kedge/for_bindings.hpp"

namespace kedge::bindings {
namespace {

/// Opens the selection that `selected` returns; it throws if the arguments are invalid.
template <class Selected>
kedge_error open(kedge_engine* engine, const char* call, kedge_newer newer, int* found, Selected&& selected) {
  if (engine == nullptr) return null_engine_error(call);
  Selection selection;
  const auto problem = attempt([&] {
    if (found == nullptr) throw_argument(compose("{}: found must not be NULL", call));
    if (newer != KEDGE_KEEP_NEWER && newer != KEDGE_DISCARD_NEWER) {
      throw_argument(
          compose("{}: newer is {}; use KEDGE_KEEP_NEWER or KEDGE_DISCARD_NEWER", call, static_cast<int>(newer)));
    }
    selection = selected();
  });
  if (problem) return refuse_on_all_ranks(*problem, [&] { (void)engine->engine.open(Tag(std::string(kUnusableTag))); });
  return run_and_catch([&] {
    const auto tag = engine->engine.open(selection, newer == KEDGE_DISCARD_NEWER ? Newer::discard : Newer::keep);
    *found = tag ? 1 : 0;
  });
}

Selection selection_of(const char* tag) {
  return tag == nullptr ? Selection(latest) : Selection(Tag(tag));  // the engine handles the word "latest"
}

}  // namespace
}  // namespace kedge::bindings

using namespace kedge;

extern "C" {

kedge_error kedge_open(kedge_engine* engine, const char* tag, kedge_newer newer, int* found) {
  return bindings::open(engine, "kedge_open", newer, found, [&] { return bindings::selection_of(tag); });
}

kedge_error kedge_open_before(kedge_engine* engine, const char* tag, kedge_newer newer, int* found) {
  return bindings::open(engine, "kedge_open_before", newer, found, [&]() -> Selection {
    if (tag == nullptr) bindings::throw_argument("kedge_open_before: tag must not be NULL");
    return Before{tag};
  });
}

kedge_error kedge_open_source(kedge_engine* engine, const char* prefix, const char* run, const char* tag, int* found) {
  return bindings::open(engine, "kedge_open_source", KEDGE_KEEP_NEWER, found, [&]() -> Selection {
    if (prefix == nullptr) bindings::throw_argument("kedge_open_source: prefix must not be NULL");
    Source source{prefix, run == nullptr ? "" : run};
    if (tag != nullptr) source.tag = tag;
    return source;
  });
}

kedge_error kedge_load(kedge_engine* engine, const char* name, void* data, kedge_dtype dtype, int dimensions,
                       const uint64_t* shape) {
  if (engine == nullptr) return bindings::null_engine_error("kedge_load");
  return bindings::run_and_catch([&] {
    const bool fits = dimensions >= 0 && dimensions <= KEDGE_MAX_DIMENSIONS;
    if (name == nullptr || !fits || (dimensions != 0 && shape == nullptr)) {
      bindings::throw_refused(ForBindings::refuse(
          engine->engine, name == nullptr ? "(null)" : name,
          compose("kedge_load with {} dimensions: name and shape must not be NULL, and the number of dimensions must "
                  "be 0 to {}",
                  dimensions, static_cast<int>(KEDGE_MAX_DIMENSIONS))));
    }
    const MutableRegion region{data,
                               bindings::data_type_of(dtype),
                               Shape(std::span(shape, static_cast<std::size_t>(dimensions))),
                               {},
                               engine->stream};
    const Status status = engine->engine.load(name, region);
    if (!status) throw Error(status.failure());
  });
}

kedge_error kedge_close(kedge_engine* engine) {
  if (engine == nullptr) return bindings::null_engine_error("kedge_close");
  engine->forget_regions();
  return bindings::run_and_catch([&] { engine->engine.close(); });
}

}  // extern "C"

// C calls for an engine's lifetime and for writing a checkpoint.
#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/text.hpp"
#include "bindings/c/attributes.hpp"
#include "bindings/c/failure.hpp"
#include "bindings/c/handle.hpp"
#include "kedge/for_bindings.hpp"
#include "kedge/types.hpp"

namespace kedge::bindings {
namespace {

static_assert(KEDGE_LEVEL_NONE == static_cast<int>(Level::none));
static_assert(KEDGE_LEVEL_SNAPSHOT == static_cast<int>(Level::snapshot));
static_assert(KEDGE_LEVEL_LOCAL == static_cast<int>(Level::local));
static_assert(KEDGE_LEVEL_PROTECTED == static_cast<int>(Level::protected_));
static_assert(KEDGE_LEVEL_PERSISTENT == static_cast<int>(Level::persistent));

/// A block of a global array as C passes it.
struct Block {
  const std::uint64_t* global_shape;
  const std::uint64_t* offset;
  bool holes_allowed;
};

struct Array {
  const void* data;
  kedge_dtype dtype;
  int dimensions;
  const std::uint64_t* shape;
};

/// Why the arguments cannot be passed to the engine; null if they can.
const char* problem_of(const char* name, const Array& array, const Block* block) {
  if (name == nullptr) return "the name of a region must not be NULL";
  if (array.dimensions < 0) return "the number of dimensions must not be negative";
  if (array.dimensions > KEDGE_MAX_DIMENSIONS) return "the number of dimensions must not exceed KEDGE_MAX_DIMENSIONS";
  if (array.dimensions == 0) return nullptr;
  if (array.shape == nullptr) return "the shape must not be NULL";
  const bool no_place = block != nullptr && (block->global_shape == nullptr || block->offset == nullptr);
  return no_place ? "the global shape and the offset must not be NULL" : nullptr;
}

Shape shape_of(const Array& array, const std::uint64_t* extents) {
  return Shape(std::span(extents, static_cast<std::size_t>(array.dimensions)));
}

kedge_error save(kedge_engine* engine, const char* name, const Array& array, const Block* block, Placement placement) {
  if (engine == nullptr) return null_engine_error("kedge_save");
  return run_and_catch([&] {
    if (const char* problem = problem_of(name, array, block)) {
      throw_refused(ForBindings::refuse(engine->engine, name == nullptr ? "(null)" : name, problem));
    }
    if (block != nullptr) {
      placement = Shard{shape_of(array, block->global_shape), shape_of(array, block->offset), block->holes_allowed};
    }
    const Region region{array.data, data_type_of(array.dtype), shape_of(array, array.shape), {}, engine->stream};
    const Status status = engine->engine.save(name, region, placement);
    if (!status) throw Error(status.failure());
  });
}

}  // namespace
}  // namespace kedge::bindings

using namespace kedge;

extern "C" {

kedge_error kedge_finalize(kedge_engine* engine) {
  if (engine == nullptr) return bindings::null_engine_error("kedge_finalize");
  engine->forget_regions();
  return bindings::run_and_catch([&] { engine->engine.finalize(); });
}

kedge_error kedge_finalize_for(kedge_engine* engine, double seconds, int* done) {
  if (engine == nullptr) return bindings::null_engine_error("kedge_finalize_for");
  engine->forget_regions();
  return bindings::run_and_catch([&] {
    // The engine ends in any case, because the other ranks take part. NaN means no limit.
    const bool answer = engine->engine.finalize_for(std::chrono::duration<double>(seconds));
    if (done == nullptr) bindings::throw_argument("kedge_finalize_for: done must not be NULL");
    *done = answer ? 1 : 0;
  });
}

void kedge_engine_free(kedge_engine* engine) { const std::unique_ptr<kedge_engine> owned(engine); }

kedge_error kedge_need_checkpoint(kedge_engine* engine, int* needed) {
  if (engine == nullptr) return bindings::null_engine_error("kedge_need_checkpoint");
  return bindings::run_and_catch([&] {
    const bool answer = engine->engine.need_checkpoint();  // before checking arguments: the other ranks take part
    if (needed == nullptr) bindings::throw_argument("kedge_need_checkpoint: needed must not be NULL");
    *needed = answer ? 1 : 0;
  });
}

kedge_error kedge_should_exit(kedge_engine* engine, int* ending) {
  if (engine == nullptr) return bindings::null_engine_error("kedge_should_exit");
  return bindings::run_and_catch([&] {
    const bool answer = engine->engine.should_exit();  // before checking arguments: the other ranks take part
    if (ending == nullptr) bindings::throw_argument("kedge_should_exit: ending must not be NULL");
    *ending = answer ? 1 : 0;
  });
}

namespace {

using Create = void (kedge::Engine::*)(std::string_view, const kedge::Attributes&);

kedge_error create(const char* call, Create begin, kedge_engine* engine, const char* tag,
                   const kedge_attribute* attributes, size_t attribute_count) {
  if (engine == nullptr) return bindings::null_engine_error(call);
  Attributes given;
  const auto problem = attempt([&] {
    if (tag == nullptr) bindings::throw_argument(compose("{}: tag must not be NULL", call));
    given = bindings::attributes_of(attributes, attribute_count);
  });
  if (problem) {
    return bindings::refuse_on_all_ranks(*problem, [&] { (engine->engine.*begin)(bindings::kUnusableTag, {}); });
  }
  return bindings::run_and_catch([&] { (engine->engine.*begin)(tag, given); });
}

using Pin = void (kedge::Engine::*)(std::string_view);

kedge_error pin(const char* call, Pin pins, kedge_engine* engine, const char* tag) {
  if (engine == nullptr) return bindings::null_engine_error(call);
  const auto problem = attempt([&] {
    if (tag == nullptr) bindings::throw_argument(compose("{}: tag must not be NULL", call));
  });
  if (problem) return bindings::refuse_on_all_ranks(*problem, [&] { (engine->engine.*pins)(bindings::kUnusableTag); });
  return bindings::run_and_catch([&] { (engine->engine.*pins)(tag); });
}

}  // namespace

kedge_error kedge_create(kedge_engine* engine, const char* tag, const kedge_attribute* attributes,
                         size_t attribute_count) {
  return create("kedge_create", &kedge::Engine::create, engine, tag, attributes, attribute_count);
}

kedge_error kedge_create_output(kedge_engine* engine, const char* tag, const kedge_attribute* attributes,
                                size_t attribute_count) {
  return create("kedge_create_output", &kedge::Engine::create_output, engine, tag, attributes, attribute_count);
}

kedge_error kedge_save(kedge_engine* engine, const char* name, const void* data, kedge_dtype dtype, int dimensions,
                       const uint64_t* shape) {
  return bindings::save(engine, name, {data, dtype, dimensions, shape}, nullptr, {});
}

kedge_error kedge_save_shard(kedge_engine* engine, const char* name, const void* data, kedge_dtype dtype,
                             int dimensions, const uint64_t* shape, const uint64_t* global_shape,
                             const uint64_t* offset, int holes_allowed) {
  const bindings::Block block{global_shape, offset, holes_allowed != 0};
  return bindings::save(engine, name, {data, dtype, dimensions, shape}, &block, {});
}

kedge_error kedge_save_replicated(kedge_engine* engine, const char* name, const void* data, kedge_dtype dtype,
                                  int dimensions, const uint64_t* shape) {
  return bindings::save(engine, name, {data, dtype, dimensions, shape}, nullptr, Replicated{});
}

kedge_error kedge_refuse(kedge_engine* engine, const char* name, const char* reason) {
  if (engine == nullptr) return bindings::null_engine_error("kedge_refuse");
  if (name == nullptr || reason == nullptr) return bindings::refuse("kedge_refuse: name and reason must not be NULL");
  return bindings::run_and_catch([&] { bindings::throw_refused(ForBindings::refuse(engine->engine, name, reason)); });
}

kedge_error kedge_commit(kedge_engine* engine) {
  if (engine == nullptr) return bindings::null_engine_error("kedge_commit");
  return bindings::run_and_catch([&] { engine->engine.commit(); });
}

kedge_error kedge_abandon(kedge_engine* engine) {
  if (engine == nullptr) return bindings::null_engine_error("kedge_abandon");
  return bindings::run_and_catch([&] { engine->engine.abandon(); });
}

const char* kedge_level_name(kedge_level level) {
  const bool known = level >= KEDGE_LEVEL_NONE && level <= KEDGE_LEVEL_PERSISTENT;
  return known ? to_string(static_cast<Level>(level)).data() : "unknown";
}

kedge_error kedge_get_level(const kedge_engine* engine, const char* tag, kedge_level* level) {
  if (engine == nullptr) return bindings::null_engine_error("kedge_get_level");
  if (tag == nullptr || level == nullptr) {
    return bindings::refuse("kedge_get_level: tag and level must not be NULL");
  }
  return bindings::run_and_catch([&] { *level = static_cast<kedge_level>(engine->engine.level(tag)); });
}

kedge_error kedge_pin(kedge_engine* engine, const char* tag) {
  return pin("kedge_pin", &kedge::Engine::pin, engine, tag);
}

kedge_error kedge_unpin(kedge_engine* engine, const char* tag) {
  return pin("kedge_unpin", &kedge::Engine::unpin, engine, tag);
}

kedge_error kedge_pause(kedge_engine* engine) {
  if (engine == nullptr) return bindings::null_engine_error("kedge_pause");
  engine->engine.pause();
  return KEDGE_OK;
}

kedge_error kedge_resume(kedge_engine* engine) {
  if (engine == nullptr) return bindings::null_engine_error("kedge_resume");
  engine->engine.resume();
  return KEDGE_OK;
}

}  // extern "C"

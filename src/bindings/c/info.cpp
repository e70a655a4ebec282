// C calls that describe the open checkpoint: facts, attributes, regions.
#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <type_traits>

#include "base/text.hpp"
#include "bindings/c/attributes.hpp"
#include "bindings/c/failure.hpp"
#include "bindings/c/handle.hpp"
#include "kedge/types.hpp"

namespace kedge::bindings {
namespace {

// Compiled into programs: add fields in `reserved`, never beyond.
static_assert(sizeof(kedge_info) == 312 || sizeof(void*) != 8);
static_assert(sizeof(kedge_region) == 288 || sizeof(void*) != 8);
static_assert(KEDGE_MAX_DIMENSIONS == Shape::kMaxDimensions);
static_assert(KEDGE_SOURCE_IN_PLACE == static_cast<int>(RecoverySource::in_place));
static_assert(KEDGE_SOURCE_MOVED == static_cast<int>(RecoverySource::moved));
static_assert(KEDGE_SOURCE_REBUILT == static_cast<int>(RecoverySource::rebuilt));
static_assert(KEDGE_SOURCE_FETCHED == static_cast<int>(RecoverySource::fetched));

template <kedge_dtype c, DataType cpp>
constexpr bool kSame = static_cast<int>(c) == static_cast<int>(cpp);
static_assert(kSame<KEDGE_INT8, DataType::int8> && kSame<KEDGE_INT16, DataType::int16>);
static_assert(kSame<KEDGE_INT32, DataType::int32> && kSame<KEDGE_INT64, DataType::int64>);
static_assert(kSame<KEDGE_UINT8, DataType::uint8> && kSame<KEDGE_UINT16, DataType::uint16>);
static_assert(kSame<KEDGE_UINT32, DataType::uint32> && kSame<KEDGE_UINT64, DataType::uint64>);
static_assert(kSame<KEDGE_FLOAT16, DataType::float16> && kSame<KEDGE_BFLOAT16, DataType::bfloat16>);
static_assert(kSame<KEDGE_FLOAT32, DataType::float32> && kSame<KEDGE_FLOAT64, DataType::float64>);
static_assert(kSame<KEDGE_COMPLEX64, DataType::complex64> && kSame<KEDGE_COMPLEX128, DataType::complex128>);
static_assert(kSame<KEDGE_BOOL, DataType::boolean> && kSame<KEDGE_OPAQUE, DataType::opaque>);
static_assert(kSame<KEDGE_FLOAT8_E4M3FN, DataType::float8_e4m3fn> && kSame<KEDGE_FLOAT8_E5M2, DataType::float8_e5m2>);

template <std::size_t size>
void give(char (&place)[size], std::string_view text) {
  copy_text(text, place, size, nullptr);
}

void give_shape(uint64_t (&place)[KEDGE_MAX_DIMENSIONS], const Shape& shape) {
  std::ranges::copy(shape.extents(), place);
}

kedge_region region_of(const RegionInfo& info) {
  kedge_region region{};
  region.name = info.name.c_str();
  region.size_bytes = info.size_bytes;
  region.dtype = static_cast<kedge_dtype>(info.dtype);
  region.dimensions = static_cast<int>(info.shape.dimensions());
  region.routed = info.routed ? 1 : 0;
  give_shape(region.shape, info.shape);
  region.placement = KEDGE_PLACEMENT_OWN;
  if (std::holds_alternative<Replicated>(info.placement)) region.placement = KEDGE_PLACEMENT_REPLICATED;
  if (const auto* shard = std::get_if<Shard>(&info.placement)) {
    region.placement = KEDGE_PLACEMENT_SHARD;
    give_shape(region.global_shape, shard->global_shape);
    give_shape(region.offset, shard->offset);
  }
  return region;
}

/// Holds the engine's lock, so that all names come from one list.
template <class Use>
kedge_error with_regions(const kedge_engine* engine, const char* call, const void* given, Use&& use) {
  if (engine == nullptr) return null_engine_error(call);
  return run_and_catch([&] {
    if (given == nullptr) {
      throw_argument(compose("{}: no argument may be NULL", call));
    }
    const std::lock_guard guard(engine->mutex);
    if (!engine->regions_known) {
      engine->regions = engine->engine.regions();
      engine->regions_known = true;
    }
    use(std::as_const(engine->regions));
  });
}

AttributeValue attribute(const kedge_engine& engine, const char* key) {
  const CheckpointInfo info = engine.engine.info();
  const auto found = info.attributes.find(std::string_view(key));
  if (found == info.attributes.end()) {
    throw Error(ErrorCode::not_found, compose("{} has no attribute {}", info.tag, key));
  }
  return found->second;
}

template <class Element>
kedge_error give_attribute(const kedge_engine* engine, const char* call, const char* key, Element* values,
                           std::size_t capacity, std::size_t* count) {
  if (engine == nullptr) return null_engine_error(call);
  return run_and_catch([&] {
    if (key == nullptr || (values == nullptr && capacity != 0)) {
      throw_argument(compose("{}: key must not be NULL; values or buffer may be NULL only if the size is 0", call));
    }
    copy_value(attribute(*engine, key), {call, key}, values, capacity, count);
  });
}

}  // namespace
}  // namespace kedge::bindings

using namespace kedge;

extern "C" {

const char* kedge_source_name(kedge_source source) {
  const bool known = source >= KEDGE_SOURCE_IN_PLACE && source <= KEDGE_SOURCE_FETCHED;
  return known ? to_string(static_cast<RecoverySource>(source)).data() : "unknown";
}

size_t kedge_dtype_size(kedge_dtype dtype) { return size_bytes(bindings::data_type_of(dtype)); }

kedge_error kedge_get_info(const kedge_engine* engine, kedge_info* info) {
  if (engine == nullptr) return bindings::null_engine_error("kedge_get_info");
  if (info == nullptr) return bindings::refuse("kedge_get_info: info must not be NULL");
  return bindings::run_and_catch([&] {
    const CheckpointInfo known = engine->engine.info();
    kedge_info given{};
    bindings::give(given.tag, known.tag);
    bindings::give(given.commit_id, to_string(known.id));
    bindings::give(given.parent_commit_id, to_string(known.parent_id));
    given.source = static_cast<kedge_source>(known.source);
    given.world_size = known.world_size;
    given.logical_rank = known.logical_rank.value;
    given.generation = known.generation;
    given.incarnation = known.incarnation;
    given.total_bytes = known.total_bytes;
    given.time_ns = known.time_ns;
    given.is_output = known.is_output ? 1 : 0;
    given.attribute_count = known.attributes.size();
    *info = given;
  });
}

kedge_error kedge_get_attribute_int64(const kedge_engine* engine, const char* key, int64_t* values, size_t capacity,
                                      size_t* count) {
  return bindings::give_attribute(engine, "kedge_get_attribute_int64", key, values, capacity, count);
}

kedge_error kedge_get_attribute_double(const kedge_engine* engine, const char* key, double* values, size_t capacity,
                                       size_t* count) {
  return bindings::give_attribute(engine, "kedge_get_attribute_double", key, values, capacity, count);
}

kedge_error kedge_get_attribute_string(const kedge_engine* engine, const char* key, char* buffer, size_t size,
                                       size_t* length) {
  return bindings::give_attribute(engine, "kedge_get_attribute_string", key, buffer, size, length);
}

kedge_error kedge_region_count(const kedge_engine* engine, size_t* count) {
  return bindings::with_regions(engine, "kedge_region_count", count,
                                [&](const auto& regions) { *count = regions.size(); });
}

kedge_error kedge_get_region(const kedge_engine* engine, size_t index, kedge_region* region) {
  return bindings::with_regions(engine, "kedge_get_region", region, [&](const auto& regions) {
    if (index >= regions.size()) {
      throw Error(ErrorCode::not_found,
                  compose("there is no region {}; this rank has {} regions", index, regions.size()));
    }
    *region = bindings::region_of(regions[index]);
  });
}

kedge_error kedge_find_region(const kedge_engine* engine, const char* name, kedge_region* region) {
  return bindings::with_regions(
      engine, "kedge_find_region", name == nullptr ? nullptr : region, [&](const auto& regions) {
        const auto found = std::ranges::find(regions, std::string_view(name), &RegionInfo::name);
        if (found == regions.end()) {
          throw Error(ErrorCode::not_found, compose("there is no region {} on this rank", name));
        }
        *region = bindings::region_of(*found);
      });
}

}  // extern "C"

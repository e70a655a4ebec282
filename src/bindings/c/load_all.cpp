// C calls that load a checkpoint whichever ranks saved it.
#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/attempt.hpp"
#include "base/text.hpp"
#include "bindings/c/failure.hpp"
#include "bindings/c/handle.hpp"
#include "kedge/for_bindings.hpp"
#include "kedge/want.hpp"

namespace kedge::bindings {
namespace {

static_assert(sizeof(kedge_want) == 7 * sizeof(void*) + 4 * sizeof(int) + 4 * sizeof(std::uint64_t),
              "compiled into programs");

/// Why the engine cannot be given this want; null if it can.
const char* problem_of(const kedge_want& given) {
  if (given.dimensions < 0 || given.dimensions > KEDGE_MAX_DIMENSIONS) {
    return "the number of dimensions must be 0 to KEDGE_MAX_DIMENSIONS";
  }
  if (size_bytes(data_type_of(given.dtype)) == 0) return "dtype is not a type; use one of kedge_dtype";
  if (given.dimensions != 0 && given.shape == nullptr) return "shape must not be NULL";
  const bool has_place = given.global_shape != nullptr && given.offset != nullptr;
  switch (given.placement) {
    case KEDGE_PLACEMENT_OWN: break;
    case KEDGE_PLACEMENT_SHARD:
      if (given.dimensions != 0 && !has_place) return "global_shape and offset of a shard must not be NULL";
      break;
    case KEDGE_PLACEMENT_REPLICATED: break;
    default: return "placement is unknown; use one of kedge_placement";
  }
  if (given.of != nullptr && given.placement != KEDGE_PLACEMENT_OWN) return "only KEDGE_PLACEMENT_OWN has a rank `of`";
  const bool has_reserved = std::ranges::any_of(given.reserved, [](std::uint64_t word) { return word != 0; });
  return has_reserved ? "reserved must be zero; initialize the whole kedge_want, as `kedge_want want = {0}` does"
                      : nullptr;
}

Want want_of(const kedge_want& given) {
  if (given.name == nullptr) throw_argument("kedge_load_all: the name of a want must not be NULL");
  const char* problem = given.refused != nullptr ? given.refused : problem_of(given);
  if (problem != nullptr) throw_argument(compose("{}: {}", given.name, problem));
  const auto shape_of = [&](const std::uint64_t* extents) {
    return Shape(std::span(extents, static_cast<std::size_t>(given.dimensions)));
  };
  Want want{given.name, {given.data, data_type_of(given.dtype), shape_of(given.shape)}};
  if (given.placement == KEDGE_PLACEMENT_SHARD) {
    want.placement = Shard{shape_of(given.global_shape), shape_of(given.offset)};
  }
  if (given.placement == KEDGE_PLACEMENT_REPLICATED) want.placement = Replicated{};
  if (given.of != nullptr) want.of = LogicalRank{*given.of};
  return want;
}

std::vector<Want> wants_of(const kedge_want* given, std::size_t count) {
  if (given == nullptr && count != 0) {
    throw_argument(compose("kedge_load_all: wants must not be NULL if count is {}", count));
  }
  std::vector<Want> wants;
  for (const kedge_want& want : std::span(given, count)) wants.push_back(want_of(want));
  return wants;
}

}  // namespace
}  // namespace kedge::bindings

using namespace kedge;

extern "C" {

kedge_error kedge_load_all(kedge_engine* engine, const kedge_want* wants, size_t count) {
  if (engine == nullptr) return bindings::null_engine_error("kedge_load_all");
  std::vector<Want> given;
  std::optional<Failure> problem = attempt([&] { given = bindings::wants_of(wants, count); });
  return bindings::run_and_catch([&] { ForBindings::load_all(engine->engine, given, std::move(problem)); });
}

kedge_error kedge_logical_ranks(const kedge_engine* engine, uint32_t* ranks, size_t capacity, size_t* count) {
  if (engine == nullptr) return bindings::null_engine_error("kedge_logical_ranks");
  return bindings::run_and_catch([&] {
    if (ranks == nullptr && capacity != 0) {
      bindings::throw_argument("kedge_logical_ranks: ranks may be NULL only if capacity is 0");
    }
    const std::vector<LogicalRank> known = engine->engine.logical_ranks();
    for (std::size_t i = 0; i < std::min(capacity, known.size()); ++i) ranks[i] = known[i].value;
    if (count != nullptr) *count = known.size();
  });
}

}  // extern "C"

#include "engine/check_load_target.hpp"

#include <string>
#include <utility>
#include <variant>

#include "base/text.hpp"

namespace kedge::engine {
namespace {

Failure failure_of(ErrorCode code, std::string message) { return Failure{code, std::move(message)}; }

/// A placement, in words.
std::string to_words(const Placement& placement) {
  if (const auto* shard = std::get_if<Shard>(&placement)) {
    return compose("the block at {} of a global array of shape {}", to_string(shard->offset),
                   to_string(shard->global_shape));
  }
  return std::holds_alternative<Replicated>(placement) ? "a replicated region" : "the rank's own";
}

/// Whether `wanted` says another place than that of `saved`; to say none is to take the region as it is.
bool has_other_placement(const Placement& saved, const Placement& wanted) {
  if (std::holds_alternative<std::monostate>(wanted)) return false;
  const auto* from = std::get_if<Shard>(&saved);
  const auto* to = std::get_if<Shard>(&wanted);
  if (from == nullptr || to == nullptr) return saved.index() != wanted.index();
  return from->global_shape != to->global_shape || from->offset != to->offset;
}

}  // namespace

std::optional<Failure> check_load_target(const Tag& tag, const format::StoredRegion& saved, const MutableRegion& wanted,
                                         const Placement& placement) {
  const format::RegionSpec& spec = saved.spec;
  if (spec.is_routed) {
    return failure_of(ErrorCode::mismatch,
                      compose("region '{}' of {} is a routed file; get it with route_in", spec.name, tag));
  }
  if (wanted.dtype != spec.dtype) {
    return failure_of(ErrorCode::mismatch,
                      compose("region '{}' of {} was saved as {} and is loaded as {}; load it as it was saved",
                              spec.name, tag, to_string(spec.dtype), to_string(wanted.dtype)));
  }
  if (wanted.members != spec.members) {
    return failure_of(ErrorCode::mismatch,
                      compose("struct members of region '{}' of {} differ: saved ({}), requested ({}); load it with "
                              "the program that saved it",
                              spec.name, tag, spec.members.empty() ? "none" : spec.members,
                              wanted.members.empty() ? "none" : wanted.members));
  }
  if (wanted.shape != spec.shape) {
    return failure_of(
        ErrorCode::mismatch,
        compose("region '{}' of {} was saved with shape {} and is loaded with shape {}; load it with the shape that "
                "was saved, or, if another program saved it, give this one a run name of its own (option run)",
                spec.name, tag, to_string(spec.shape), to_string(wanted.shape)));
  }
  if (has_other_placement(spec.placement, placement)) {
    return failure_of(ErrorCode::mismatch,
                      compose("region '{}' of {} was saved as {} and is loaded as {}; each rank loads what it saved",
                              spec.name, tag, to_words(spec.placement), to_words(placement)));
  }
  if (wanted.data == nullptr && saved.size_bytes != 0) {
    return failure_of(ErrorCode::invalid_argument, compose("region '{}' has no memory (null pointer)", spec.name));
  }
  return std::nullopt;
}

}  // namespace kedge::engine

#include "arrays/wants.hpp"

#include <limits>

#include "base/text.hpp"
#include "format/region_spec.hpp"

namespace kedge::arrays {
namespace {

/// Whether a block of this extent that begins there ends within the array.
bool reaches_over(std::uint64_t offset, std::uint64_t extent, std::uint64_t array) {
  return extent > array || offset > array - extent;
}

bool lies_within(const Shape& shape, const Shape& offset, const Shape& array) {
  if (shape.dimensions() != array.dimensions() || offset.dimensions() != array.dimensions()) return false;
  for (std::size_t d = 0; d < array.dimensions(); ++d) {
    if (reaches_over(offset[d], shape[d], array[d])) return false;
  }
  return true;
}

}  // namespace

LookUp look_up_of(const Want& want) noexcept {
  if (std::holds_alternative<Shard>(want.from)) return LookUp::shard;
  if (std::holds_alternative<Replicated>(want.from)) return LookUp::replicated;
  return std::holds_alternative<LogicalRank>(want.from) ? LookUp::of_rank : LookUp::only_one;
}

ArrayType type_of(const Want& want) {
  const auto* shard = std::get_if<Shard>(&want.from);
  return {want.dtype, want.members, shard == nullptr ? want.shape : shard->global_shape};
}

ArrayType type_of(const Offer& offer) {
  const auto* shard = std::get_if<Shard>(&offer.placement);
  return {offer.dtype, offer.members, shard == nullptr ? offer.shape : shard->global_shape};
}

Box box_of(const Want& want) {
  const auto* shard = std::get_if<Shard>(&want.from);
  return shard == nullptr ? box_of(want.shape) : box_at(shard->offset, want.shape);
}

Box box_of(const Offer& offer) {
  const auto* shard = std::get_if<Shard>(&offer.placement);
  return shard == nullptr ? box_of(offer.shape) : box_at(shard->offset, offer.shape);
}

std::optional<Failure> check(const Want& want) {
  if (const auto* shard = std::get_if<Shard>(&want.from)) {
    if (!lies_within(want.shape, shard->offset, shard->global_shape)) {
      return Failure{ErrorCode::mismatch,
                     compose("region '{}': a block of shape {} at ({}) reaches over the edge of the global array of "
                             "shape {}; ask for a block within it",
                             format::printable_name(want.name), to_string(want.shape), to_string(shard->offset),
                             to_string(shard->global_shape)),
                     -1,
                     {},
                     0};
    }
  }
  if (want.inside && !lies_within(want.shape, Shape(std::span(want.inside->at).first(want.shape.dimensions())),
                                  want.inside->extents)) {
    return Failure{
        ErrorCode::invalid_argument,
        compose("region '{}': a block of shape {} reaches over the edge of the memory of shape {} that it is "
                "loaded into; make the memory larger",
                format::printable_name(want.name), to_string(want.shape), to_string(want.inside->extents)),
        -1,
        {},
        0};
  }
  return std::nullopt;
}

std::string describe_elements(DataType dtype, std::string_view members) {
  if (members.empty()) return std::string(to_string(dtype));
  return compose("structs ({})", members);
}

std::string describe(LookUp look_up, const ArrayType& type) {
  const std::string what =
      compose("{} of shape {}", describe_elements(type.dtype, type.members), to_string(type.shape));
  if (look_up == LookUp::shard) return "a block of a global array, " + what;
  if (look_up == LookUp::replicated) return "replicated, " + what;
  return "a region of one rank alone, " + what;
}

std::string describe(const Offer& offer) {
  if (std::holds_alternative<Shard>(offer.placement)) return describe(LookUp::shard, type_of(offer));
  if (std::holds_alternative<Replicated>(offer.placement)) return describe(LookUp::replicated, type_of(offer));
  return describe(LookUp::of_rank, type_of(offer));
}

}  // namespace kedge::arrays

// What a load on another number of ranks is made of: *wants*, which processes have, and *offers*, the saved regions
// that a process can read for all of them: it is their *steward*. Each process has its own, of any number.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "arrays/pattern.hpp"
#include "kedge/error.hpp"
#include "kedge/types.hpp"

namespace kedge::arrays {

/// Elements of a region, and of which array: the global one of a shard, otherwise the region itself.
struct ArrayType {
  DataType dtype = DataType::opaque;
  std::string members = {};  ///< of structs
  Shape shape;
  bool operator==(const ArrayType&) const = default;
};

/// A saved region, which its steward can read.
struct Offer {
  std::string name;
  DataType dtype = DataType::opaque;
  std::string members = {};
  Shape shape;
  Placement placement;
  std::uint32_t logical_rank = 0;  ///< that saved it
  /// In this node's stores: only the steward reads it. Otherwise it lies on the prefix, where any process can.
  bool is_in_store = false;
};

/// Asks for the one region of a name that is some rank's own, whoever saved it.
struct OnlyOne {
  bool operator==(const OnlyOne&) const = default;
};

/// What a process asks for.
struct Want {
  std::string name;
  DataType dtype = DataType::opaque;
  std::string members = {};
  Shape shape;  ///< of the block or region
  /// A block of a global array, what all ranks saved alike, that rank's own region, or the one region of the name.
  std::variant<OnlyOne, Shard, Replicated, LogicalRank> from;
  std::optional<BoxInArray> inside = {};  ///< where it goes in the memory of a larger array; nothing: contiguous
};

/// How a name is looked up. What one of these saves is not found by another.
enum class LookUp : std::uint8_t { shard, replicated, of_rank, only_one };
inline constexpr LookUp kLastLookUp = LookUp::only_one;

[[nodiscard]] LookUp look_up_of(const Want& want) noexcept;
[[nodiscard]] ArrayType type_of(const Want& want);
[[nodiscard]] ArrayType type_of(const Offer& offer);
/// The part of its array that is wanted or offered; all of it unless it is a shard.
[[nodiscard]] Box box_of(const Want& want);
[[nodiscard]] Box box_of(const Offer& offer);

/// Nothing, or `mismatch` if the block does not lie in its array. What a process can check by itself.
[[nodiscard]] std::optional<Failure> check(const Want& want);

/// "float64", or the members of structs.
[[nodiscard]] std::string describe_elements(DataType dtype, std::string_view members);
/// For messages: "a block of a global array, float64 of shape 3 x 4".
[[nodiscard]] std::string describe(LookUp look_up, const ArrayType& type);
[[nodiscard]] std::string describe(const Offer& offer);

}  // namespace kedge::arrays

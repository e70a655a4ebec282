// A region without its bytes: name, type, shape and placement in a global array.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "kedge/error.hpp"
#include "kedge/types.hpp"

namespace kedge::format {

struct RegionSpec {
  std::string name;
  DataType dtype = DataType::opaque;
  Shape shape;
  Placement placement;
  bool is_routed = false;    ///< a file that commit stored, not memory
  std::string members = {};  ///< members of structs (members.hpp), whose size is the last extent; may be empty
  bool operator==(const RegionSpec&) const = default;
};

/// Size of the region; requires a spec that passed check_region_spec().
[[nodiscard]] std::uint64_t region_size_bytes(const RegionSpec& spec) noexcept;

/// Returns invalid_argument with the field if a container cannot hold the region. The name must be UTF-8 of at most
/// 1024 bytes, without an empty, "." or ".." part, and not in or below ".kedge" or "ranks". The type must be valid,
/// with at most 8 dimensions and a size below 2^63. A shard lies inside its global array; members describe a struct.
/// The writer checks rules between regions (unique names, no region as a group).
[[nodiscard]] std::optional<Failure> check_region_spec(const RegionSpec& spec);

/// The region that stores an empty routed directory: on disk, do not change.
[[nodiscard]] RegionSpec make_empty_directory(std::string name);
[[nodiscard]] bool is_empty_directory(const RegionSpec& spec) noexcept;

/// Whether it is the region of the checkpoint's attributes, the only one of Kedge's own that check_region_spec()
/// accepts.
[[nodiscard]] bool is_attributes_region(const RegionSpec& spec);

/// A name for use in messages: printable, and short enough to reach the other ranks whole.
[[nodiscard]] std::string printable_name(std::string_view name);

}  // namespace kedge::format

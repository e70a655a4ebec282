// A region without its bytes: name, type, shape and placement in the whole job.
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
  bool routed = false;       ///< the bytes of a file taken in by commit, not of memory
  std::string members = {};  ///< of structs (members.hpp), whose bytes are the last extent; empty: not described
  bool operator==(const RegionSpec&) const = default;
};

/// Bytes of the region; only for a spec that check() lets pass.
[[nodiscard]] std::uint64_t size_bytes(const RegionSpec& spec) noexcept;

/// Nothing if a container can hold it, otherwise invalid_argument with the field: the name is UTF-8 of at most 1024
/// bytes without empty, "." or ".." part and not in or below ".kedge" or "ranks"; the type is one; at most 8
/// dimensions; the size fits 63 bits; a shard lies inside its global array; members describe a struct. Rules between
/// regions (no name twice, no name that is also a group) are the writer's.
[[nodiscard]] std::optional<Failure> check(const RegionSpec& spec);

/// A routed directory with nothing in it, which is written so: on disk, do not change.
[[nodiscard]] RegionSpec empty_directory(std::string name);
[[nodiscard]] bool is_empty_directory(const RegionSpec& spec) noexcept;

/// The region that holds the checkpoint's attributes: the one of Kedge's own that check() lets pass.
[[nodiscard]] bool is_attributes(const RegionSpec& spec);

}  // namespace kedge::format

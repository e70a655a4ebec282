// Names of the container files in a run's folder on the node-local store: "rank-<logical rank>.<number>.h5".
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "kedge/types.hpp"

namespace kedge::store {

/// Which rank's container file it is, and which of that rank's files, which are reused in turn.
struct ContainerName {
  LogicalRank logical_rank;
  std::uint32_t number = 0;
  auto operator<=>(const ContainerName&) const = default;
};

/// The file's name, without folder.
[[nodiscard]] std::string to_string(const ContainerName& name);

/// Nothing for the name of any other file.
[[nodiscard]] std::optional<ContainerName> parse_container_name(std::string_view name) noexcept;

}  // namespace kedge::store

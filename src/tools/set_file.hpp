// Describes parity files and set descriptors as text and JSON.
#pragma once

#include <string>

#include "base/json_forward.hpp"
#include "format/set_descriptor.hpp"

namespace kedge::tools {

/// The member that keeps the file.
[[nodiscard]] inline const format::SetMember& holder(const format::SetDescriptor& set) {
  return set.members.at(set.position);
}

/// A line such as "parity of set 3 (xor), generation 7, rank 2".
[[nodiscard]] std::string set_line(const format::SetDescriptor& set);
/// The whole head for people; `path` as the user gave it.
[[nodiscard]] std::string set_text(const format::SetDescriptor& set, const std::string& path);
[[nodiscard]] Json set_json(const format::SetDescriptor& set, const std::string& path);

}  // namespace kedge::tools

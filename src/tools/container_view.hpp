// Describes one file of a store or tag as text and JSON: a container, a parity file or a set descriptor.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json_forward.hpp"
#include "format/container_reader.hpp"
#include "format/set_descriptor.hpp"
#include "kedge/error.hpp"
#include "tools/examine.hpp"

namespace kedge::tools {

/// The readable parts of a container; regions only if the index is intact.
struct Content {
  std::string path;  ///< as the user gave it
  format::Superblock superblock;
  std::vector<format::StoredRegion> regions;
  std::optional<Failure> damage;
};

/// Throws Error{corrupt} if the superblock is damaged, Error{io}.
[[nodiscard]] Content read_content(const OpenedFile& opened, const std::string& path);

[[nodiscard]] std::string content_text(const Content& content);
[[nodiscard]] Json content_json(const Content& content);

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

// Describes one container as text and JSON.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json_forward.hpp"
#include "format/container_reader.hpp"
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

}  // namespace kedge::tools

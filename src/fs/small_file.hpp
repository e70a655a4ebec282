// Small files that are read whole.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>

#include "fs/file_system.hpp"

namespace kedge::fs {

/// Local. The file's content, but not more than its first `bytes_max`. Throws Error{not_found | io}.
[[nodiscard]] inline std::string read_text(FileSystem& file_system, const std::string& path, std::uint64_t bytes_max) {
  const auto file = file_system.open(path, Access::read);
  std::string text(std::min(file->status().size_bytes, bytes_max), '\0');
  file->read(0, std::as_writable_bytes(std::span(text)));
  return text;
}

}  // namespace kedge::fs

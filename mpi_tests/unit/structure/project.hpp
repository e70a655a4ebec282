// The project's own files, for the tests that read them.
#pragma once

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "unit/structure/rules.hpp"

namespace kedge::structure {

inline const std::filesystem::path kRoot = KEDGE_SOURCE_DIR;

inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// All files below the directories whose text people write.
inline std::vector<Source> read_sources(const std::vector<std::string>& directories) {
  static const std::set<std::string> kinds = {".c", ".h", ".cpp", ".hpp", ".py", ".txt", ".cmake", ".f90", ".in", ""};
  std::vector<Source> sources;
  for (const std::string& directory : directories) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(kRoot / directory)) {
      if (!entry.is_regular_file() || !kinds.contains(entry.path().extension().string())) continue;
      sources.push_back({entry.path().lexically_relative(kRoot).generic_string(), read_file(entry.path())});
    }
  }
  return sources;
}

}  // namespace kedge::structure

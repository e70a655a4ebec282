// Output of kedge ls for a prefix or a store.
#pragma once

#include <string>

#include "fs/file_system.hpp"
#include "tools/outcome.hpp"

namespace kedge::tools {

struct Listing {
  std::string output;
  Outcome outcome = Outcome::ok;
};

/// Text, or JSON for programs. `directory` is canonical, `shown` the user's spelling. Problems of single entries are in
/// the listing; throws those of the directory itself.
[[nodiscard]] Listing list_prefix(fs::FileSystem& file_system, const std::string& directory, const std::string& shown,
                                  bool json);
[[nodiscard]] Listing list_store(fs::FileSystem& file_system, const std::string& directory, const std::string& shown,
                                 bool json);

}  // namespace kedge::tools

// Output of kedge ls: the checkpoints of a prefix, or one node's store.
#pragma once

#include <string>

#include "fs/file_system.hpp"
#include "tools/outcome.hpp"

namespace kedge::tools {

struct Listing {
  std::string output;
  Outcome outcome = Outcome::ok;
};

/// Words, or JSON for programs. `directory` is canonical, `shown` as the user wrote it. What is wrong with single
/// entries is in the listing; throws what the directory itself throws.
[[nodiscard]] Listing list_prefix(fs::FileSystem& file_system, const std::string& directory, const std::string& shown,
                                  bool json);
[[nodiscard]] Listing list_store(fs::FileSystem& file_system, const std::string& directory, const std::string& shown,
                                 bool json);

}  // namespace kedge::tools

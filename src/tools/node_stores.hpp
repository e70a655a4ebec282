// This user's node-local stores on this node.
#pragma once

#include <string>
#include <vector>

#include "fs/file_system.hpp"
#include "store/store_removal.hpp"

namespace kedge::tools {

/// A run's directory on this node, and its content.
struct Store {
  std::string directory;
  store::StoreContent content;
};

/// Throws Error{not_found | mismatch} with the remedy if it is not this user's store.
[[nodiscard]] Store open_store(fs::FileSystem& file_system, const std::string& path);

/// Searches the default locations.
[[nodiscard]] std::vector<Store> find_stores(fs::FileSystem& file_system);

}  // namespace kedge::tools

// The node-local stores of this user on this node.
#pragma once

#include <string>
#include <vector>

#include "fs/file_system.hpp"
#include "store/store_removal.hpp"

namespace kedge::tools {

/// A run's directory on this node, and what is in it.
struct Store {
  std::string directory;
  store::StoreContent content;
};

/// Throws Error{not_found | mismatch} that says what to do if it is no store of this user.
[[nodiscard]] Store open_store(fs::FileSystem& file_system, const std::string& path);

/// In the default places.
[[nodiscard]] std::vector<Store> find_stores(fs::FileSystem& file_system);

}  // namespace kedge::tools

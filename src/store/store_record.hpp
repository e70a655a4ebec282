// A small file in a store that says which run and prefix own it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "fs/file_system.hpp"
#include "kedge/types.hpp"

namespace kedge::store {

struct StoreRecord {
  Id128 run_id;        ///< none if there is no valid record
  Id128 prefix_id;     ///< id of the owning prefix, as in RunRecord::prefix_id
  std::string prefix;  ///< canonical path of the prefix at the last start that used the store
  /// Other paths that starts used for the prefix, newest first, e.g. through links that may have changed.
  std::vector<std::string> prefix_paths = {};
  bool operator==(const StoreRecord&) const = default;
};

/// Local. Reads the record of the store in `directory`. Throws Error{io}.
[[nodiscard]] StoreRecord read_store_record(fs::FileSystem& file_system, const std::string& directory);

[[nodiscard]] std::string to_text(const StoreRecord& record);

/// Local. The beginning of a small file in a store; empty if there is none. Throws Error{io}.
[[nodiscard]] std::string read_small_file(fs::FileSystem& file_system, const std::string& directory,
                                          std::string_view name);

/// Pure. The id at the start of the text; none if there is none.
[[nodiscard]] Id128 parse_leading_id(const std::string& text);

}  // namespace kedge::store

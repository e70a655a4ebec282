// Which run a store belongs to, in one small file of its directory.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "fs/file_system.hpp"
#include "kedge/types.hpp"

namespace kedge::store {

/// Content of the record.
struct StoreRecord {
  Id128 run_id;        ///< none if there is no valid record
  Id128 prefix_id;     ///< whose store it is: as RunRecord::prefix_id
  std::string prefix;  ///< canonical: where the run's checkpoints lay at the last start that used the store
  /// Other paths by which starts were given the prefix, newest first: through a link that may lead elsewhere by now.
  std::vector<std::string> names = {};
  bool operator==(const StoreRecord&) const = default;
};

/// Local. Reads the record of the store in `directory`. Throws Error{io}.
[[nodiscard]] StoreRecord read_store_record(fs::FileSystem& file_system, const std::string& directory);

/// Pure. Content of the record's file.
[[nodiscard]] std::string to_text(const StoreRecord& record);

/// Local. The first bytes of a small file of a store; empty if there is none. Throws Error{io}.
[[nodiscard]] std::string read_small_file(fs::FileSystem& file_system, const std::string& directory,
                                          std::string_view name);

/// Pure. The id at the start of the text; none if there is none.
[[nodiscard]] Id128 parse_leading_id(const std::string& text);

}  // namespace kedge::store

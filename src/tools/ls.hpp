// Output of kedge ls for a prefix or a store.
#pragma once

#include <string>

#include "base/json_forward.hpp"
#include "fs/file_system.hpp"
#include "store/failed_flush.hpp"
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

/// A line such as "step-120: flush failed 2 min 3 s ago: no_space: ...".
[[nodiscard]] std::string failed_flush_text(const store::FailedFlush& failed);
[[nodiscard]] Json failed_flush_json(const store::FailedFlush& failed);

}  // namespace kedge::tools

// The catalog: a run's list of its persistent commits, which saves opening thousands of manifests. It is a cache:
// commits that it lacks are read from the manifests, and a directory without a manifest is not a commit.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fs/file_system.hpp"
#include "persist/tags.hpp"

namespace kedge::persist {

/// In the run's records: `<prefix>/.kedge/<run>/tags.jsonl`. One JSON object per line, {"added": TagEntry without
/// `pinned`} or {"removed": directory}, each with the CRC32C of the bytes before `,"crc":` as its last member.
inline constexpr std::string_view kTagCatalogFile = "tags.jsonl";

/// The catalog of one run, with one writer at a time (the newest incarnation). All calls are local and may throw
/// Error{io | no_space}.
class TagCatalog {
 public:
  /// `directory`, of the run's records, must exist. Reads and writes nothing yet. `file_system` must outlive this.
  TagCatalog(fs::FileSystem& file_system, const std::string& directory);

  /// Adds an entry; on stable storage when it returns. A failure only costs readers time, so the caller may continue.
  void add(const TagEntry& entry);
  /// Removes an entry; on stable storage when it returns. Rewrites the file when it has far more lines than entries.
  void remove(const std::string& directory);
  /// Adds all that the catalog lacks at once, after the file was lost or damaged.
  void add_missing(const std::vector<TagEntry>& entries);
  /// Returns the entries, in the order in which they were added. Ignores torn or damaged lines, and a missing file.
  [[nodiscard]] std::vector<TagEntry> read();

 private:
  struct Content {
    std::vector<TagEntry> entries;
    std::size_t line_count = 0;
  };
  [[nodiscard]] Content read_content();
  void append(std::string_view line);
  void rewrite(const std::vector<TagEntry>& entries);

  fs::FileSystem& file_system_;
  std::string directory_;
  std::string path_;
  bool name_is_durable_ = false;
  std::optional<std::size_t> removals_until_check_;  ///< nothing: the file was not read yet
};

}  // namespace kedge::persist

// The run's own list of its persistent commits, so that nobody has to open thousands of manifests. It is a cache: what
// it lacks is read from the manifests, and a directory without a manifest is no commit whatever it says.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fs/file_system.hpp"
#include "persist/tags.hpp"

namespace kedge::persist {

/// Below the run's records: `<prefix>/.kedge/<run>/tags.jsonl`. One JSON object per line, {"added": TagEntry without
/// `pinned`} or {"removed": directory}, each with the CRC32C of the bytes before `,"crc":` as its last member.
inline constexpr std::string_view kTagCatalogFile = "tags.jsonl";

/// Local; one writer per run at a time (the newest incarnation). All calls may throw Error{io | no_space}.
class TagCatalog {
 public:
  /// `directory` is that of the run's records, and exists. Nothing is read or written yet. `file_system` must outlive
  /// it.
  TagCatalog(fs::FileSystem& file_system, const std::string& directory);

  /// On stable storage when it returns. A failure costs readers time, nothing else: the caller may go on.
  void add(const TagEntry& entry);
  /// Removes an entry; on stable storage when it returns. Writes the file anew when it holds far more lines than living
  /// entries.
  void remove(const std::string& directory);
  /// Adds those that are not in it, at once: after the file was lost or damaged.
  void complete(const std::vector<TagEntry>& entries);
  /// The living entries, in the order in which they were added. Lines that are torn or damaged count for nothing; so
  /// does a file that is missing.
  [[nodiscard]] std::vector<TagEntry> read();

 private:
  struct Content {
    std::vector<TagEntry> live;
    std::size_t lines = 0;
  };
  [[nodiscard]] Content content();
  void append(std::string_view line);
  void rewrite(const std::vector<TagEntry>& entries);

  fs::FileSystem& file_system_;
  std::string directory_;
  std::string path_;
  bool name_is_durable_ = false;
  std::optional<std::size_t> removals_until_look_;  ///< nothing: the file was not looked at yet
};

}  // namespace kedge::persist

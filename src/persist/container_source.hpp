// One logical rank's container in a tag directory, found through the manifest and checked against it.
#pragma once

#include <memory>
#include <string>

#include "format/manifest.hpp"
#include "fs/file_system.hpp"
#include "kedge/types.hpp"

namespace kedge::persist {

/// Local. Opens the file; its size, superblock and index are those of the manifest's row. Throws Error{not_found},
/// corrupt, io. The bytes of regions are for the reader to check.
class ContainerSource {
 public:
  /// `tag_directory` is a path. Throws Error{corrupt} also if the directory is that of another commit.
  ContainerSource(fs::FileSystem& file_system, const std::string& tag_directory, const Id128& commit_id,
                  LogicalRank logical_rank);

  [[nodiscard]] const format::ShardRow& row() const noexcept { return row_; }
  [[nodiscard]] fs::File& file() const noexcept { return *file_; }
  [[nodiscard]] const std::string& path() const noexcept { return file_->path(); }

 private:
  format::ShardRow row_;
  std::unique_ptr<fs::File> file_;
};

}  // namespace kedge::persist

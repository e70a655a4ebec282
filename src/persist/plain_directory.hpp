// Routed files of a commit as plain files, below its tag directory.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "fs/file_system.hpp"
#include "fs/tree.hpp"
#include "kedge/options.hpp"
#include "kedge/types.hpp"

namespace kedge::persist {

/// Writes and removes plain files, for PrefixWriter::write_plain_file and PrefixRemover. All calls are local; links on
/// the way are never followed.
class PlainDirectory {
 public:
  /// `tag_directory` must belong to this user.
  PlainDirectory(fs::FileSystem& file_system, std::string tag_directory, const Options::Persistent& options)
      : file_system_(file_system), tag_directory_(std::move(tag_directory)), options_(options) {}

  /// Makes the directories that contain those of the ranks.
  void make_directories(std::uint32_t world_size) const;
  /// Writes a file, or makes an empty directory if `name` ends with '/'. On stable storage when it returns, except the
  /// name of the rank's directory.
  void write_file(LogicalRank logical_rank, const std::string& name,
                  const std::function<void(fs::ByteAccess& to)>& write) const;
  /// Brings what make_directories() made, and the names in it, to stable storage. Does nothing if nothing was made.
  void sync_directories(std::uint32_t world_size) const;
  /// Removes the files of a rank, if there are any. Returns false if `should_stop` ended it before that.
  [[nodiscard]] bool remove_files_of_rank(LogicalRank logical_rank, const fs::ShouldStop& should_stop) const;
  /// Removes the files of all ranks, and the directories. Files that are not Kedge's stay and keep their directory.
  void remove_all() const;

 private:
  void make_directory(const std::string& path) const;
  [[nodiscard]] bool is_directory(const std::string& path) const;

  fs::FileSystem& file_system_;
  std::string tag_directory_;
  const Options::Persistent& options_;
};

}  // namespace kedge::persist

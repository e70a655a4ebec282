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

/// For PrefixWriter::write_plain_file and PrefixRemover. All calls are local; links on the way are never followed.
class PlainDirectory {
 public:
  /// `tag_directory` is that of a commit of this user's.
  PlainDirectory(fs::FileSystem& file_system, std::string tag_directory, const Options::Persistent& options)
      : file_system_(file_system), tag_directory_(std::move(tag_directory)), options_(options) {}

  /// Makes the directories that the ranks' own lie in.
  void make(std::uint32_t world_size) const;
  /// A name that ends with '/' is a directory with nothing in it. On stable storage when it returns, but for the name
  /// of the rank's directory.
  void put(LogicalRank logical_rank, const std::string& name,
           const std::function<void(fs::ByteAccess& to)>& write) const;
  /// Brings to stable storage what make() made, and the names in it. Fine if nothing was made.
  void sync(std::uint32_t world_size) const;
  /// Removes the files of a rank; fine if there are none. False if `enough` ended it before that.
  [[nodiscard]] bool remove(LogicalRank logical_rank, const fs::ShouldStop& enough) const;
  /// Removes those of all ranks, and the directories. What is not Kedge's stays and keeps its directory.
  void clear() const;

 private:
  void make_directory(const std::string& path) const;
  [[nodiscard]] bool is_directory(const std::string& path) const;

  fs::FileSystem& file_system_;
  std::string tag_directory_;
  const Options::Persistent& options_;
};

}  // namespace kedge::persist

// The directory of a run's records on the prefix: small files that are written whole or not at all.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "fs/file_system.hpp"

namespace kedge::persist {

inline constexpr std::uint64_t kRecordBytesMax = std::uint64_t{1} << 20U;  ///< no record has more

/// `<prefix>/.kedge/<run>/`. All calls are local and throw Error{io | no_space} when the prefix cannot be used. Written
/// files are on stable storage when the call returns, unless it says otherwise.
class RecordDirectory {
 public:
  /// Makes the prefix and the run's directory if they are missing. Throws io if a directory belongs to another user or
  /// can be written by others.
  RecordDirectory(std::shared_ptr<fs::FileSystem> file_system, const std::string& prefix, std::string run);

  [[nodiscard]] fs::FileSystem& file_system() const noexcept { return *file_system_; }
  /// Returns the canonical path of the prefix.
  [[nodiscard]] const std::string& prefix() const noexcept { return prefix_; }
  [[nodiscard]] const std::string& run() const noexcept { return run_; }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] std::string path_of(std::string_view name) const { return fs::join(path_, name); }

  [[nodiscard]] bool contains(std::string_view name) const { return file_system_->status(path_of(name)).has_value(); }
  [[nodiscard]] std::vector<std::string> list_files() const { return file_system_->list(path_); }
  [[nodiscard]] std::string read(std::string_view name) const;

  /// Writes a file, unless it exists.
  void write_once(std::string_view name, std::string_view text) const;
  /// Replaces a file by way of `temporary`.
  void replace(std::string_view name, std::string_view text, std::string_view temporary) const;
  /// Removes a file, if it exists. Not on stable storage before sync().
  void remove(std::string_view name) const { file_system_->remove(path_of(name)); }
  void sync() const { file_system_->sync_directory(path_); }

  /// Whether `directory` is seen to be this one, reached by another path; false also if it is out of this user's reach.
  [[nodiscard]] bool is_same_directory(const std::string& directory) const;

 private:
  std::shared_ptr<fs::FileSystem> file_system_;
  std::string prefix_;
  std::string run_;
  std::string path_;
};

}  // namespace kedge::persist

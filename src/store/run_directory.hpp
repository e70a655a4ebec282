// Names, lists and removes files in the run's directory on this node.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fs/file_system.hpp"
#include "kedge/error.hpp"
#include "store/file_name.hpp"
#include "store/location.hpp"

namespace kedge::store {

/// All calls are local.
class RunDirectory {
 public:
  /// `durable`: names come to stable storage.
  RunDirectory(std::shared_ptr<fs::FileSystem> file_system, StoreLocation location, bool durable = false)
      : file_system_(std::move(file_system)), location_(std::move(location)), durable_(durable) {}

  [[nodiscard]] fs::FileSystem& file_system() const noexcept { return *file_system_; }
  [[nodiscard]] const std::string& path() const noexcept { return location_.directory; }
  [[nodiscard]] bool memory_backed() const noexcept { return location_.memory_backed; }

  /// Runs a step on the directory. If the directory is gone, throws io with the consequences.
  template <class Step>
  auto run_in_directory(Step&& step) const {
    try {
      return std::forward<Step>(step)();
    } catch (const Error& error) {
      if (error.code() == ErrorCode::not_found) throw_if_removed();
      throw;
    }
  }

  [[nodiscard]] std::string path_of(const FileName& name) const;
  /// Files of all kinds and ranks, sorted by kind, rank and number.
  [[nodiscard]] std::vector<FileName> list_files() const;

  /// Allocated bytes up to the file's size, without holes. 0 if the file is gone.
  [[nodiscard]] std::uint64_t stored_bytes(const FileName& name) const;

  /// Whether a part of the file has no storage.
  [[nodiscard]] bool has_holes(const FileName& name) const;

  /// Whether the name belongs to something that is not this user's file: leave it alone.
  [[nodiscard]] bool is_foreign(const FileName& name) const;

  void remove(const FileName& name) const { file_system_->remove(path_of(name)); }
  /// With store.durable, returns when all names are on stable storage.
  void sync_names() const;

 private:
  void throw_if_removed() const;

  std::shared_ptr<fs::FileSystem> file_system_;
  StoreLocation location_;
  bool durable_;
};

}  // namespace kedge::store

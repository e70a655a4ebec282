// The run's directory on this node: how the files in it are named, made, opened and removed.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "fs/file_system.hpp"
#include "kedge/options.hpp"
#include "store/file_name.hpp"
#include "store/location.hpp"
#include "store/store_file.hpp"

namespace kedge::store {

/// All calls are local. Files that are open must not outlive it: they ask it for space.
class RunDirectory {
 public:
  /// `used_bytes` says how much of the quota is taken.
  RunDirectory(std::shared_ptr<fs::FileSystem> file_system, Options::Store options, Location location,
               std::function<std::uint64_t()> used_bytes);
  RunDirectory(const RunDirectory&) = delete;
  RunDirectory& operator=(const RunDirectory&) = delete;

  [[nodiscard]] fs::FileSystem& file_system() const noexcept { return *file_system_; }
  [[nodiscard]] const Location& location() const noexcept { return location_; }

  [[nodiscard]] std::string path_of(const FileName& name) const;
  /// Files of all kinds and ranks, by kind, rank and number.
  [[nodiscard]] std::vector<FileName> list() const;

  /// True if the name is taken by what is no file of this user: neither read nor written nor removed.
  [[nodiscard]] bool is_foreign(const FileName& name) const;

  /// Throws Error{io} if it is another user's.
  [[nodiscard]] std::unique_ptr<StoreFile> open(const FileName& name) const;
  /// Throws Error{io} if the name is taken.
  [[nodiscard]] std::unique_ptr<StoreFile> create(const FileName& name) const;
  /// Files that are opened or made from now on write directly what is large, where that is possible.
  void write_directly() noexcept { direct_ = true; }
  void remove(const FileName& name) const { file_system_->remove(path_of(name)); }
  /// With store.durable: the names that were made are on stable storage when it returns.
  void make_names_durable() const;

 private:
  [[nodiscard]] StoreFile::SpaceCheck space_check() const;
  void check_space(std::uint64_t additional_bytes) const;
  [[noreturn]] void explain_refusal(const Failure& refused, std::uint64_t needed_bytes) const;

  std::shared_ptr<fs::FileSystem> file_system_;
  Options::Store options_;
  Location location_;
  std::function<std::uint64_t()> used_bytes_;
  bool direct_ = false;
};

}  // namespace kedge::store

// Names, creates, opens and removes files in the run's directory on this node.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fs/file_system.hpp"
#include "kedge/options.hpp"
#include "store/file_name.hpp"
#include "store/location.hpp"
#include "store/store_file.hpp"

namespace kedge::store {

inline constexpr std::string_view kQuota = "store.quota_bytes";

/// All calls are local. Open files ask this object for space, so it must outlive them.
class RunDirectory final : public SpaceManager {  // NOLINT(cppcoreguidelines-virtual-class-destructor): final
 public:
  /// `used_bytes` returns the bytes that count towards the quota, of all ranks of this node.
  RunDirectory(std::shared_ptr<fs::FileSystem> file_system, Options::Store options, Location location, LogicalRank mine,
               std::function<std::uint64_t()> used_bytes);
  /// For inspecting the store of an ended job: nothing is written or reserved.
  RunDirectory(std::shared_ptr<fs::FileSystem> file_system, std::string directory)
      : RunDirectory(std::move(file_system), {}, {std::move(directory), false}, LogicalRank{0},
                     [] { return std::uint64_t{0}; }) {}

  [[nodiscard]] fs::FileSystem& file_system() const noexcept { return *file_system_; }
  [[nodiscard]] const std::string& path() const noexcept { return location_.directory; }
  [[nodiscard]] bool memory_backed() const noexcept { return location_.memory_backed; }

  /// Runs a step on the directory. If the directory is gone, throws io with the consequences.
  template <class Step>
  auto within(Step&& step) const {
    try {
      return std::forward<Step>(step)();
    } catch (const Error& error) {
      if (error.code() == ErrorCode::not_found) throw_if_removed();
      throw;
    }
  }

  [[nodiscard]] std::string path_of(const FileName& name) const;
  /// Files of all kinds and ranks, sorted by kind, rank and number.
  [[nodiscard]] std::vector<FileName> list() const;

  /// Allocated bytes up to the file's size, without holes. 0 if the file is gone.
  [[nodiscard]] std::uint64_t stored_bytes(const FileName& name) const;

  /// Whether a part of the file has no storage.
  [[nodiscard]] bool has_holes(const FileName& name) const;

  /// Whether the name belongs to something that is not this user's file: leave it alone.
  [[nodiscard]] bool is_foreign(const FileName& name) const;

  /// Throws Error{io} if the file is another user's.
  [[nodiscard]] std::unique_ptr<StoreFile> open(const FileName& name) const;
  /// Throws Error{io} if the name exists.
  [[nodiscard]] std::unique_ptr<StoreFile> create(const FileName& name) const;
  /// Lets files opened from now on bypass the page cache for large writes, where possible.
  void enable_direct_writes() noexcept { direct_ = true; }
  void remove(const FileName& name) const { file_system_->remove(path_of(name)); }
  /// Sets how many processes of this node, including this one, use the directory.
  void set_process_count(std::uint64_t processes) noexcept {
    processes_ = processes;
    if (processes > 1) admission_.share();
  }
  /// Removes this process's reservations.
  void sweep() const { admission_.sweep(); }
  /// With store.durable, returns when all names are on stable storage.
  void make_names_durable() const;

  [[nodiscard]] Admission::Admitted admit(std::uint64_t additional_bytes) const override;
  [[nodiscard]] bool has_ample_space(std::uint64_t additional_bytes) const override;
  [[noreturn]] void explain(const Failure& refused, std::uint64_t needed_bytes) const override;

  /// All limits on the space here, with the quota, if any, before the system's. Throws io.
  [[nodiscard]] std::vector<fs::SpaceLimit> space_limits() const;

 private:
  void throw_if_removed() const;
  /// Nothing if there is no quota.
  [[nodiscard]] std::optional<std::uint64_t> quota_left() const;
  [[nodiscard]] std::optional<Failure> check_fits(std::uint64_t additional_bytes) const;

  std::shared_ptr<fs::FileSystem> file_system_;
  Options::Store options_;
  Location location_;
  std::function<std::uint64_t()> used_bytes_;
  Admission admission_;
  std::uint64_t processes_ = 1;
  bool direct_ = false;
};

}  // namespace kedge::store

// The run's directory on this node: how the files in it are named, made, opened and removed.
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

/// The name of the quota as a limit.
inline constexpr std::string_view kQuota = "store.quota_bytes";

/// All calls are local. Files that are open must not outlive it: they ask it for space.
class RunDirectory final : public SpaceManager {  // NOLINT(cppcoreguidelines-virtual-class-destructor): final
 public:
  /// `used_bytes` says how much of the quota is taken, by all ranks of this node.
  RunDirectory(std::shared_ptr<fs::FileSystem> file_system, Options::Store options, Location location, LogicalRank mine,
               std::function<std::uint64_t()> used_bytes);
  /// To look at what an ended job left: nothing is written or taken.
  RunDirectory(std::shared_ptr<fs::FileSystem> file_system, std::string directory)
      : RunDirectory(std::move(file_system), {}, {std::move(directory), false}, LogicalRank{0},
                     [] { return std::uint64_t{0}; }) {}

  [[nodiscard]] fs::FileSystem& file_system() const noexcept { return *file_system_; }
  [[nodiscard]] const Location& location() const noexcept { return location_; }

  /// Runs a step on what is in it. If the whole directory is gone, throws io, which says what follows.
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
  /// Files of all kinds and ranks, by kind, rank and number.
  [[nodiscard]] std::vector<FileName> list() const;

  /// Bytes of storage in use for it, no more than its size: a hole takes none. 0 if it is gone.
  [[nodiscard]] std::uint64_t stored_bytes(const FileName& name) const;

  /// Part of its size has no storage.
  [[nodiscard]] bool has_holes(const FileName& name) const;

  /// True if the name is taken by what is no file of this user: neither read nor written nor removed.
  [[nodiscard]] bool is_foreign(const FileName& name) const;

  /// Throws Error{io} if it is another user's.
  [[nodiscard]] std::unique_ptr<StoreFile> open(const FileName& name) const;
  /// Throws Error{io} if the name is taken.
  [[nodiscard]] std::unique_ptr<StoreFile> create(const FileName& name) const;
  /// Files that are opened or made from now on write directly what is large, where that is possible.
  void enable_direct_writes() noexcept { direct_ = true; }
  void remove(const FileName& name) const { file_system_->remove(path_of(name)); }
  /// Sets how many processes of this node have files here, this one included.
  void set_process_count(std::uint64_t processes) noexcept {
    processes_ = processes;
    if (processes > 1) admission_.share();
  }
  /// Removes this process's notes of what it was about to take.
  void sweep() const { admission_.sweep(); }
  /// With store.durable: the names that were made are on stable storage when it returns.
  void make_names_durable() const;

  [[nodiscard]] Admission::Admitted admit(std::uint64_t additional_bytes) const override;
  [[nodiscard]] bool has_ample_space(std::uint64_t additional_bytes) const override;
  [[noreturn]] void explain(const Failure& refused, std::uint64_t needed_bytes) const override;

  /// Everything that limits what can be taken here: the quota, if there is one, before what the system says. Throws io.
  [[nodiscard]] std::vector<fs::SpaceLimit> space_limits() const;

 private:
  void throw_if_removed() const;
  /// Nothing without a quota.
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

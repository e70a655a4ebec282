// Opens and creates the files of a run's directory, and decides which storage they may take.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "store/admission.hpp"
#include "store/node_ranks.hpp"
#include "store/run_directory.hpp"
#include "store/store_file.hpp"

namespace kedge::store {

inline constexpr std::string_view kQuotaLimitName = "store.quota_bytes";

/// All calls are local. Open files ask this object for space, so it must outlive them.
class StoreSpace final : public SpaceManager {  // NOLINT(cppcoreguidelines-virtual-class-destructor): final
 public:
  /// `quota_bytes`: 0 is no limit. `used_bytes` returns the bytes that count towards it, of all ranks of this node.
  StoreSpace(std::shared_ptr<fs::FileSystem> file_system, const RunDirectory& directory, const NodeRanks& ranks,
             std::uint64_t quota_bytes, std::function<std::uint64_t()> used_bytes);

  [[nodiscard]] const RunDirectory& directory() const noexcept { return directory_; }

  /// Throws Error{io} if the file is another user's.
  [[nodiscard]] std::unique_ptr<StoreFile> open(const FileName& name) const;
  /// Throws Error{io} if the name exists.
  [[nodiscard]] std::unique_ptr<StoreFile> create(const FileName& name) const;
  /// Lets files opened from now on bypass the page cache for large writes, where possible.
  void enable_direct_writes() noexcept { uses_direct_writes_ = true; }

  [[nodiscard]] Admission::Admitted admit_bytes(std::uint64_t additional_bytes) const override;
  [[nodiscard]] bool has_ample_space(std::uint64_t additional_bytes) const override;
  [[noreturn]] void throw_refusal(const Failure& refused, std::uint64_t needed_bytes) const override;
  /// All limits on the space here, with the quota, if any, before the system's. Throws io.
  [[nodiscard]] std::vector<fs::SpaceLimit> limits() const;
  /// Removes this process's reservations.
  void remove_reservations() const { admission_.remove_reservations(); }

 private:
  /// Nothing if there is no quota.
  [[nodiscard]] std::optional<std::uint64_t> quota_left() const;
  [[nodiscard]] std::optional<Failure> check_fits(std::uint64_t additional_bytes) const;

  std::shared_ptr<fs::FileSystem> file_system_;
  const RunDirectory& directory_;
  std::uint64_t quota_bytes_;
  std::function<std::uint64_t()> used_bytes_;
  Admission admission_;
  std::uint64_t process_count_ = 1;  ///< number of processes of this node
  bool uses_direct_writes_ = false;
};

}  // namespace kedge::store

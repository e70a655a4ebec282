// Adopted files, of ranks that do not run on this node: read and removed here, never written.
#pragma once

#include <memory>
#include <set>
#include <span>
#include <vector>

#include "store/slot.hpp"

namespace kedge::store {

/// Only a file's owner may reuse it. If its owner runs elsewhere, this process offers the file to others, lets it be
/// read while pinned, and removes it when it is superseded.
class AdoptedFiles {
 public:
  explicit AdoptedFiles(const RunDirectory& directory) : directory_(directory) {}

  /// Takes over the files in `names` that are this process's to adopt, and drops those that no longer exist. Adopts
  /// nothing until set_ranks_on_node() was called with the ascending ranks, of which this process is number `place`.
  void find(std::span<const FileName> names);
  void assign_share(std::span<const int> ranks_on_node, std::size_t place);

  void scan(const Id128& run_id, Verify verify, std::vector<ScannedFile>& found);
  /// Reads every byte of this commit's files that the last scan found intact.
  void verify(const Id128& run_id, const Id128& commit_id, std::span<const FileKey> but,
              std::vector<ScannedFile>& found);
  /// A new file of a rank that this process is in charge of, unsealed; `expected_bytes` are taken at once (0:
  /// unknown). Throws no_space, io, and bad_state for other ranks.
  [[nodiscard]] StoreFile& begin(FileKind kind, LogicalRank whose, std::uint64_t expected_bytes);
  /// The file of begin() is removed.
  void discard(Slot& slot);
  /// Adds what can be pinned of this commit.
  void offered(const Id128& commit_id, std::set<PinnableFile>& files) const;
  /// Removes files whose key is not kept, except pinned ones and those of other users.
  void remove_all_but(const IsKept& is_kept);
  /// Removes this commit's files that are not pinned; returns how many.
  std::size_t drop(const Id128& commit_id);
  void remove_all();

  /// Null if it is not an adopted file.
  [[nodiscard]] Slot* slot_of(const StoreFile& file) noexcept;
  /// Offers nothing of the file of this path until the next scan.
  void ignore_until_scan(const std::string& path);
  [[nodiscard]] Slot* find_slot(FileKind kind, LogicalRank whose, const FileKey& key) noexcept;
  [[nodiscard]] std::uint64_t used_bytes() const;
  /// Of the files that this start began.
  [[nodiscard]] std::uint64_t begun_bytes() const;
  [[nodiscard]] std::size_t size() const noexcept { return slots_.size(); }

 private:
  [[nodiscard]] bool is_in_share(LogicalRank owner) const;
  template <class Condition>
  void remove_if(Condition&& condition);

  const RunDirectory& directory_;
  std::vector<std::uint32_t> ranks_on_node_;
  std::size_t place_ = 0;
  std::vector<std::unique_ptr<Slot>> slots_;
  std::set<FileName> begun_;
};

}  // namespace kedge::store

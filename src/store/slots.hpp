// This rank's files of one kind on the node-local store, which are reused in turn.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "store/slot.hpp"

namespace kedge::store {

/// How many files of a kind should have storage in advance.
struct PreallocationTarget {
  std::size_t idle = 1;
  std::size_t all = 1;  ///< upper bound, including files with content
};

/// A file is free (unsealed), being written, sealed and kept, or sealed and retired. The next one to write is a free
/// one, else the oldest retired one, else a new one. Excess idle files are removed.
class Slots {
 public:
  Slots(const RunDirectory& directory, FileKind kind, LogicalRank owner)
      : directory_(directory), kind_(kind), owner_(owner) {}

  /// Takes over this rank's files of this kind from `names`, which must be complete, and drops missing ones.
  void find(std::span<const FileName> names);
  /// Reads every file except those being written.
  void scan(const Id128& run_id, Verify verify, std::vector<ScannedFile>& found);

  /// Reads every byte of this commit's files that the last scan found intact, without the skipped ones.
  void verify(const Id128& run_id, const Id128& commit_id, const SkippedFiles& skipped_files,
              std::vector<ScannedFile>& found);

  /// Sets how many idle files stay.
  void set_idle_files(std::size_t files) noexcept { idle_files_ = files; }
  /// See NodeStore. The files are begun one after the other.
  [[nodiscard]] std::uint64_t additional_bytes(std::span<const std::uint64_t> sizes) const;
  [[nodiscard]] StoreFile& begin(std::uint64_t expected_bytes);
  [[nodiscard]] bool begin_would_overwrite() const;
  static void sealed(Slot& slot, const FileKey& key, std::uint64_t generation);
  void preallocate(std::uint64_t size_bytes, const PreallocationTarget& wanted);
  void free_unused_storage();
  void discard(Slot& slot);
  /// Removes the file unless it is pinned.
  void remove(Slot& slot);
  void retire_all_but(const IsKept& is_kept, std::uint64_t newest);
  void remove_all();

  /// Null if it is not one of these files.
  [[nodiscard]] Slot* slot_of(const StoreFile& file) noexcept;
  /// Offers nothing of the file of this path until the next scan.
  void ignore_until_scan(const std::string& path);
  [[nodiscard]] Slot* find_slot(const FileKey& key) noexcept;
  /// Whether a sealed, intact file was removed by another process. Throws io.
  [[nodiscard]] bool has_missing_files() const;
  /// Keys of the sealed, intact files.
  [[nodiscard]] std::vector<FileKey> keys() const;
  [[nodiscard]] std::uint64_t used_bytes() const;
  [[nodiscard]] std::size_t size() const noexcept { return slots_.size(); }

 private:
  [[nodiscard]] std::size_t count_with_storage() const;
  [[nodiscard]] bool is_reused_before(const Slot& one, const Slot& other) const;
  [[nodiscard]] Slot* idle_slot() const;
  [[nodiscard]] Slot& free_slot();
  [[nodiscard]] Slot& new_slot();
  [[nodiscard]] Slot& begin_any();
  void replace_if_lost(Slot& slot);
  StoreFile& replace(Slot& slot);
  void replace_if_shared(Slot& slot);
  StoreFile& opened_for_refill(Slot& slot);
  [[nodiscard]] bool has_better(const Slot& slot) const;
  void remove_idle();

  const RunDirectory& directory_;
  FileKind kind_;
  LogicalRank owner_;
  std::size_t idle_files_ = 1;
  std::vector<std::unique_ptr<Slot>> slots_;
};

}  // namespace kedge::store

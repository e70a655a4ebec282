// Begins files on the node-local store and ends that with a seal or without.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "store/slots.hpp"

namespace kedge::store {

/// A file about to be begun.
struct PlannedFile {
  FileKind kind = FileKind::container;
  std::uint64_t size_bytes = 0;           ///< 0: unknown
  std::optional<LogicalRank> owner = {};  ///< nothing: this rank's own
};

/// Numbers of files of a kind that should have storage in advance.
struct PreallocationTarget {
  std::size_t idle_count = 1;
  std::size_t total_count = 1;  ///< upper bound, including files with content
};

/// The next own file to write is a free one, else the oldest retired one, which scans still offer until then, else a
/// new one. All calls are local and thread-safe; the content of a file is for the caller that began it. Calls throw
/// Error{bad_state} for files that are not this store's or not this rank's to write.
class NewFiles {
 public:
  explicit NewFiles(Slots& slots) : slots_(slots) {}

  /// Begins an unsealed file, an own one or a new one of a rank whose files this process adopts. Takes the storage of
  /// `size_bytes` if quota and free space permit. Throws no_space, io.
  [[nodiscard]] StoreFile& begin_file(const PlannedFile& file);
  /// Records that a file of begin_file() was sealed. A parity file must end with its parity (StoreFile::set_size).
  void mark_sealed(StoreFile& file, const FileKey& key, std::uint64_t generation);
  /// Discards a file of begin_file(): unseals it if needed, and frees its storage if that is quick.
  void discard_file(StoreFile& file);

  /// Storage that these files would take, begun one after the other, beyond what their idle files have. Throws io.
  [[nodiscard]] std::uint64_t additional_bytes(std::span<const PlannedFile> planned) const;
  /// Whether begin_file() would take a file that scans still offer.
  [[nodiscard]] bool begin_would_overwrite(FileKind kind) const;
  /// Allocates storage for one idle or new file, unless `wanted` is already met; the next begin_file() finds it. On
  /// memory, new storage costs as much as the copy into it. Throws no_space, io, and then takes nothing.
  void preallocate(FileKind kind, std::uint64_t size_bytes, const PreallocationTarget& wanted);

 private:
  [[nodiscard]] Slot& begin_own(FileKind kind);
  [[nodiscard]] Slot& begin_adopted(FileKind kind, LogicalRank owner);
  [[nodiscard]] std::vector<Slot*> idle_slots(FileKind kind) const;
  [[nodiscard]] Slot& begun_slot(const StoreFile& file) const;
  void replace_if_lost(Slot& slot) const;
  StoreFile& open_for_refill(Slot& slot) const;
  void discard_file(Slot& slot);

  Slots& slots_;
};

}  // namespace kedge::store

// Scans, verifies and pins the sealed files of this process on the node-local store.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "store/slots.hpp"

namespace kedge::store {

/// Containers, parity, set descriptors and manifests, own and adopted. All calls are local and thread-safe; the content
/// of a file is for the caller that pinned it.
class StoredFiles {
 public:
  explicit StoredFiles(Slots& slots) : slots_(slots) {}

  /// Reads files of all kinds again, except those being written; with Verify::all, compares every checksum.
  [[nodiscard]] std::vector<ScannedFile> scan(const Id128& run_id, Verify verify);
  /// Reads every byte of this commit's files that the last scan found intact. Damaged and missing ones are not offered
  /// any more. Returns the files' state.
  [[nodiscard]] std::vector<ScannedFile> verify(const Id128& run_id, const Id128& commit_id,
                                                const SkippedFiles& skipped_files = {});
  /// Hides a file from pin() until the next scan, because other files contradict it.
  void hide_until_scan(const std::string& path);
  /// Stops offering a damaged file that pin() finds. Removes it if it is an own parity file, which is never rebuilt.
  /// Throws io; the next scan may then offer the file again.
  void reject_file(const PinnableFile& file);
  /// Whether another process removed one of the own sealed files. Throws io.
  [[nodiscard]] bool has_missing_files() const;

  /// Files of this commit that pin() finds, each once.
  [[nodiscard]] std::vector<PinnableFile> list_pinnable(const Id128& commit_id) const;
  /// Whether pin() finds the file.
  [[nodiscard]] bool has_file(FileKind kind, LogicalRank owner, const FileKey& key) const;
  /// Size of the file that pin() finds; 0 if there is none.
  [[nodiscard]] std::uint64_t size_bytes(FileKind kind, LogicalRank owner, const FileKey& key) const;
  /// Pins the sealed, intact file of this key: it is neither overwritten nor removed until every pin() had its unpin().
  /// Adopted files must not be written. Throws not_found, io.
  [[nodiscard]] StoreFile& pin(FileKind kind, LogicalRank owner, const FileKey& key);
  /// Throws Error{bad_state} for files that are not this store's or not pinned.
  void unpin(StoreFile& file);

 private:
  Slots& slots_;
};

}  // namespace kedge::store

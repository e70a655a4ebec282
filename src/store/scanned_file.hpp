// Results of scanning the node-local store.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "format/manifest.hpp"
#include "format/set_descriptor.hpp"
#include "format/superblock.hpp"
#include "kedge/types.hpp"
#include "store/file_name.hpp"

namespace kedge::store {

/// The commit and protection of a sealed file; containers have no protection_id.
struct FileKey {
  Id128 commit_id;
  Id128 protection_id;
  auto operator<=>(const FileKey&) const = default;
};

/// Files to leave out of a verification.
struct SkippedFiles {
  std::span<const FileKey> own = {};  ///< among this rank's own files
  std::span<const FileKey> all = {};
};

/// Whether the files of this key must stay.
using IsKept = std::function<bool(const FileKey&)>;

/// A file that pin() finds.
struct PinnableFile {
  FileKind kind = FileKind::container;
  LogicalRank owner;
  FileKey key;
  auto operator<=>(const PinnableFile&) const = default;
};

struct ScannedFile {
  FileKind kind = FileKind::container;
  LogicalRank logical_rank;                             ///< rank in the file's name
  std::optional<format::Superblock> superblock;         ///< head of a readable, sealed container
  std::optional<format::SetDescriptor> set_descriptor;  ///< head of a readable, sealed parity file or descriptor
  std::optional<format::ManifestHead> manifest;         ///< head of a readable, sealed manifest
  std::optional<CommitHead> copied_commit;  ///< the container's commit, if this is parity that is a copy of a container
  std::string path;
  std::uint64_t size_bytes = 0;
  bool intact = false;  ///< nothing that was checked is damaged
  std::string damage;   ///< what is wrong; empty if unsealed, which is no damage

  /// Nothing if the file is unreadable or unsealed.
  [[nodiscard]] std::optional<FileKey> key() const {
    if (superblock) return FileKey{superblock->commit.id, {}};
    if (set_descriptor) return FileKey{set_descriptor->commit_id, set_descriptor->protection_id};
    if (manifest) return FileKey{manifest->commit.id, {}};
    return std::nullopt;
  }
  /// 0 if the file has no key.
  [[nodiscard]] std::uint64_t generation() const noexcept {
    return superblock       ? superblock->commit.generation
           : set_descriptor ? set_descriptor->generation
           : manifest       ? manifest->commit.generation
                            : 0;
  }
};

}  // namespace kedge::store

// Results of scanning the files of a node-local store.
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

/// Owner of a sealed file; protection_id is none for containers.
struct FileKey {
  Id128 commit_id;
  Id128 protection_id;
  auto operator<=>(const FileKey&) const = default;
};

/// Files that are not read whole, though others of their commit are.
struct SkippedFiles {
  std::span<const FileKey> own = {};  ///< only those of this rank
  std::span<const FileKey> all = {};
};

/// Whether what belongs to this key stays.
using IsKept = std::function<bool(const FileKey&)>;

/// A file that can be pinned.
struct PinnableFile {
  FileKind kind = FileKind::container;
  LogicalRank whose;
  FileKey key;
  auto operator<=>(const PinnableFile&) const = default;
};

/// A file as a scan found it.
struct ScannedFile {
  FileKind kind = FileKind::container;
  LogicalRank logical_rank;                      ///< whose file it is, by its name
  std::optional<format::Superblock> superblock;  ///< containers; nothing if it cannot be read or is unsealed
  std::optional<format::SetDescriptor> set;      ///< parity and descriptors; likewise
  std::optional<format::ManifestHead> manifest;  ///< manifests; likewise
  std::optional<CommitHead> copied;              ///< parity that is a copy of a container: that one's commit
  std::string path;
  std::uint64_t size_bytes = 0;
  bool intact = false;  ///< everything that was asked to be verified is as it was written
  std::string damage;   ///< why it is not, empty for an unsealed file (which is no damage)

  /// Nothing if what the file holds cannot be read or is unsealed.
  [[nodiscard]] std::optional<FileKey> key() const {
    if (superblock) return FileKey{superblock->commit.id, {}};
    if (set) return FileKey{set->commit_id, set->protection_id};
    if (manifest) return FileKey{manifest->commit.id, {}};
    return std::nullopt;
  }
  /// 0 if it has no key.
  [[nodiscard]] std::uint64_t generation() const noexcept {
    return superblock ? superblock->commit.generation
           : set      ? set->generation
           : manifest ? manifest->commit.generation
                      : 0;
  }
};

}  // namespace kedge::store

// Verifies that a store file is what it should be. All checks of store files are here.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "format/container_reader.hpp"
#include "format/manifest.hpp"
#include "format/set_descriptor.hpp"
#include "fs/file_system.hpp"
#include "kedge/options.hpp"
#include "kedge/types.hpp"
#include "store/scanned_file.hpp"

namespace kedge::store {

[[nodiscard]] std::string_view kind_name(FileKind kind) noexcept;

/// Expected identity of a file; unset fields are not compared.
struct ExpectedFile {
  std::optional<FileKind> kind;  ///< if unset, the kind by its first bytes
  std::optional<Id128> run_id;
  std::optional<LogicalRank> logical_rank;  ///< not compared for manifests, which any rank may keep
  std::optional<FileKey> key;
  std::optional<std::uint64_t> generation;
  std::optional<std::uint32_t> world_size;
  std::optional<Tag> tag;  ///< not compared for parity and descriptors, which have none
};

/// The first fault, in the order of the checks.
enum class FileFault : std::uint8_t {
  none,
  truncated,  ///< shorter than the first 4096 bytes
  unsealed,   ///< being written or free
  bad_magic,  ///< the file is of no kind, or of another kind that is damaged, too
  head,       ///< the first 4096 bytes are damaged or inconsistent
  kind,       ///< an intact file of another kind
  run,
  rank,    ///< another rank, or one beyond the commit's world size
  commit,  ///< another commit, generation, tag or world size
  protection,
  size,       ///< differs from the head's
  structure,  ///< the index
  content,    ///< wrong checksums
};

/// Result of verifying a file, with all that could be read, even if it is wrong.
struct VerifiedFile {
  FileFault fault = FileFault::none;
  std::string message;                                  ///< one sentence without the path, or empty
  std::optional<FileKind> kind;                         ///< kind by its content
  std::optional<format::Superblock> superblock;         ///< head of a container
  std::optional<format::SetDescriptor> set_descriptor;  ///< head of a parity file or descriptor
  std::optional<format::ManifestHead> manifest;         ///< head of a manifest
  std::optional<CommitHead> copied_commit;              ///< the container's commit, if this is parity that is a copy
  std::vector<format::Damage> damages;                  ///< damaged stretches, with FileFault::content

  [[nodiscard]] bool is_intact() const noexcept { return fault == FileFault::none; }
  /// The file's rank; nothing for manifests and unreadable files.
  [[nodiscard]] std::optional<LogicalRank> logical_rank() const;
  [[nodiscard]] std::optional<FileKey> key() const;
};

/// Gets the number of bytes checked since the last call.
using OnProgress = std::function<void(std::uint64_t)>;

/// Local. Verify::headers checks identity, exact size, and a container's index; Verify::all also checks every byte.
/// Descriptors are always checked completely. Throws io if reading fails, mismatch for a newer format.
[[nodiscard]] VerifiedFile verify_file(fs::ByteAccess& bytes, std::uint64_t size_bytes, const std::string& path,
                                       const ExpectedFile& expected, Verify verify, const OnProgress& on_progress = {});

/// Local. Verifies as verify_file() does, and throws Error{corrupt} unless the file is intact.
VerifiedFile require_intact_file(fs::ByteAccess& bytes, std::uint64_t size_bytes, const std::string& path,
                                 const ExpectedFile& expected, Verify verify);

}  // namespace kedge::store

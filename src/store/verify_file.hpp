// Is a file of the store what it is meant to be? The one place that says so.
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

/// "container", "parity", "set descriptor", "manifest".
[[nodiscard]] std::string_view noun(FileKind kind) noexcept;

/// Expected identity of a file; unknown fields are not compared.
struct ExpectedFile {
  std::optional<FileKind> kind;  ///< nothing: whatever its first bytes say
  std::optional<Id128> run_id;
  std::optional<LogicalRank> logical_rank;  ///< whose; not compared for manifests, which any rank may keep
  std::optional<FileKey> key;
  std::optional<std::uint64_t> generation;
  std::optional<std::uint32_t> world_size;
  std::optional<Tag> tag;  ///< not compared for parity and descriptors, which have none
};

/// The first thing that is wrong, in the order in which it is looked for.
enum class FileFault : std::uint8_t {
  none,
  truncated,  ///< shorter than the first 4096 bytes
  unsealed,   ///< being written or free
  bad_magic,  ///< the first bytes are those of no kind, or of another kind that cannot be read either
  head,       ///< the first 4096 bytes are damaged or contradict themselves
  kind,       ///< the file is whole, and of another kind
  run,
  rank,    ///< another rank's, or one that its commit does not have
  commit,  ///< of another commit, generation, tag or world size
  protection,
  size,       ///< other than its head says
  structure,  ///< the index behind the head
  content,    ///< checksums
};

/// Result of verifying a file. Whatever could be read of it is here even if it is not what it should be.
struct VerifiedFile {
  FileFault fault = FileFault::none;
  std::string message;                           ///< one sentence, or empty; without the path
  std::optional<FileKind> kind;                  ///< by its content
  std::optional<format::Superblock> superblock;  ///< of a container
  std::optional<format::SetDescriptor> set;      ///< of parity and descriptors
  std::optional<format::ManifestHead> manifest;  ///< of a manifest
  std::optional<CommitHead> copied;              ///< of parity that is a copy: of the container's commit
  std::vector<format::Damage> damages;           ///< of FileFault::content

  [[nodiscard]] bool is_intact() const noexcept { return fault == FileFault::none; }
  /// Whose it is; nothing for manifests and what cannot be read.
  [[nodiscard]] std::optional<LogicalRank> logical_rank() const;
  [[nodiscard]] std::optional<FileKey> key() const;
};

/// Called with the bytes checked since the last call.
using OnProgress = std::function<void(std::uint64_t)>;

/// Local. Verify::headers: who it is, its exact size, and a container's index; Verify::all: every byte as well.
/// Descriptors are verified whole in any case. Throws what reading throws (io), and mismatch for a newer format.
[[nodiscard]] VerifiedFile verify_file(fs::ByteAccess& bytes, std::uint64_t size_bytes, const std::string& path,
                                       const ExpectedFile& expected, Verify verify, const OnProgress& on_progress = {});

/// Local. Verifies as verify_file does; throws Error{corrupt} unless it is intact.
VerifiedFile require_file(fs::ByteAccess& bytes, std::uint64_t size_bytes, const std::string& path,
                          const ExpectedFile& expected, Verify verify);

}  // namespace kedge::store

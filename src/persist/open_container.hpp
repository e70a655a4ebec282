// Opens containers through the manifest of their commit and verifies that they are the committed ones; for engine and
// tools.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "format/container_reader.hpp"
#include "format/manifest.hpp"
#include "fs/file_system.hpp"
#include "kedge/error.hpp"
#include "kedge/types.hpp"

namespace kedge::persist {

struct OpenedManifest {
  std::unique_ptr<fs::ByteAccess> bytes;
  std::unique_ptr<format::ManifestReader> reader;
};

/// A container that is the committed one, as far as superblock and index say. The reader checks the bytes of regions.
struct OpenedContainer {
  format::ShardRow row;  ///< the manifest's row
  std::string path;      ///< path for messages
  std::unique_ptr<fs::ByteAccess> bytes;
  std::unique_ptr<format::ContainerReader> reader;
};

/// Why a file is not the container that the manifest describes.
struct ContainerProblem {
  enum class Kind : std::uint8_t {
    file_name,          ///< the manifest gives another file than Kedge would
    missing,            ///< there is no such file
    missing_directory,  ///< the file's directory is missing, too
    link,               ///< a symbolic link is on the way
    not_a_directory,    ///< another file is in the place of a directory
    unsealed,           ///< its first bytes are zeros
    unreadable,         ///< superblock or index are damaged, or not those of a container
    identity,           ///< the file belongs to another commit or rank
    size,               ///< the file has another size
    content,            ///< whole in itself, but not what the manifest was made for
  };
  Kind kind = Kind::unreadable;
  std::string problem_path =
      {};  ///< for missing_directory, link, not_a_directory: which, relative to the tag directory
  std::optional<format::Superblock> found_superblock = {};  ///< for identity: the file's superblock
  std::uint64_t size_bytes = 0;                             ///< for size: the file's
};

/// A problem with a container: not_found if the file is missing, io if something else is in its place, else corrupt.
class ContainerError : public Error {
 public:
  ContainerError(ContainerProblem problem, Failure failure) : Error(std::move(failure)), problem_(std::move(problem)) {}
  [[nodiscard]] const ContainerProblem& problem() const noexcept { return problem_; }

 private:
  ContainerProblem problem_;
};

/// Verifies an opened container: its superblock must be that of this rank and of the commit in the manifest's head;
/// size, index and CRC32C of the whole file, as far as superblock and index determine it, must be those of the
/// manifest's row. Reads superblock and index. Throws ContainerError; io. Local.
[[nodiscard]] OpenedContainer open_checked_container(std::unique_ptr<fs::ByteAccess> bytes, std::uint64_t size_bytes,
                                                     const std::string& path, const format::ManifestHead& head,
                                                     const format::ShardRow& row, LogicalRank logical_rank);

/// A tag directory of a POSIX filesystem.
struct TagPath {
  std::string directory;
  std::string display_path = {};  ///< path for messages; empty: `directory`

  [[nodiscard]] const std::string& for_messages() const noexcept {
    return display_path.empty() ? directory : display_path;
  }
};

/// Opens the manifest. Throws Error{not_found} (no manifest: not committed), corrupt, mismatch (newer format), io.
/// Local.
[[nodiscard]] OpenedManifest open_manifest(fs::FileSystem& file_system, const TagPath& tag_path);

/// Local. The container of `logical_rank` as `row`, the manifest's, describes it: found under the name that Kedge gives
/// it and through no link, and judged. Throws ContainerError; not_found, io.
[[nodiscard]] OpenedContainer open_container(fs::FileSystem& file_system, const TagPath& tag_path,
                                             const format::ManifestHead& head, const format::ShardRow& row,
                                             LogicalRank logical_rank);

/// Local. Opens a container through the manifest, which must be that of just this commit. Throws also corrupt.
[[nodiscard]] OpenedContainer open_container(fs::FileSystem& file_system, const TagPath& tag_path,
                                             const CommitHead& commit, LogicalRank logical_rank);

/// Local. Opens a container for a caller that knows no more of the commit than its id.
[[nodiscard]] OpenedContainer open_container(fs::FileSystem& file_system, const TagPath& tag_path,
                                             const Id128& commit_id, LogicalRank logical_rank);

}  // namespace kedge::persist

// A container, found through the manifest of its commit, is opened and judged here, for engine and tools alike.
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
  format::ShardRow row;  ///< the manifest's
  std::string path;      ///< for messages
  std::unique_ptr<fs::ByteAccess> bytes;
  std::unique_ptr<format::ContainerReader> reader;
};

/// Why a file is not the container that the manifest describes.
struct ContainerProblem {
  enum class Kind : std::uint8_t {
    file_name,          ///< the manifest gives another file than Kedge would
    missing,            ///< there is no such file
    missing_directory,  ///< nor the directory for it
    link,               ///< a symbolic link is on the way
    not_a_directory,    ///< another file is in the place of a directory
    unsealed,           ///< its first bytes are zeros
    unreadable,         ///< superblock or index are damaged, or not those of a container
    identity,           ///< the file belongs to another commit or rank
    size,               ///< the file has another size
    content,            ///< whole in itself, but not what the manifest was made for
  };
  Kind kind = Kind::unreadable;
  std::string where = {};                        ///< missing_directory, link, not_a_directory: which, below the tag's
  std::optional<format::Superblock> found = {};  ///< identity: what it is instead
  std::uint64_t size_bytes = 0;                  ///< size: what it has
};

/// Code of the problem: not_found if the file is missing, io if something is in its way, else corrupt.
class ContainerError : public Error {
 public:
  ContainerError(ContainerProblem problem, Failure failure) : Error(std::move(failure)), problem_(std::move(problem)) {}
  [[nodiscard]] const ContainerProblem& problem() const noexcept { return problem_; }

 private:
  ContainerProblem problem_;
};

/// Local. Judges what was opened: by its superblock it is the container of that rank of just the commit that the
/// manifest's head describes; size, index and CRC32C of the whole file, as far as superblock and index determine it,
/// are those of the manifest's row. Reads superblock and index. Throws ContainerError; io.
[[nodiscard]] OpenedContainer open_checked_container(std::unique_ptr<fs::ByteAccess> bytes, std::uint64_t size_bytes,
                                                     const std::string& path, const format::ManifestHead& head,
                                                     const format::ShardRow& row, LogicalRank logical_rank);

/// A tag directory of a POSIX filesystem.
struct TagPath {
  std::string directory;
  std::string shown = {};  ///< the directory for messages; empty: as it is

  [[nodiscard]] const std::string& for_messages() const noexcept { return shown.empty() ? directory : shown; }
};

/// Local. Throws Error{not_found} (no manifest: not committed), corrupt, mismatch (newer format), io.
[[nodiscard]] OpenedManifest open_manifest(fs::FileSystem& file_system, const TagPath& place);

/// Local. The container of `logical_rank` as `row`, the manifest's, describes it: found under the name that Kedge gives
/// it and through no link, and judged. Throws ContainerError; not_found, io.
[[nodiscard]] OpenedContainer open_container(fs::FileSystem& file_system, const TagPath& place,
                                             const format::ManifestHead& head, const format::ShardRow& row,
                                             LogicalRank logical_rank);

/// Local. Opens a container through the manifest, which must be that of just this commit. Throws also corrupt.
[[nodiscard]] OpenedContainer open_container(fs::FileSystem& file_system, const TagPath& place,
                                             const CommitHead& commit, LogicalRank logical_rank);

/// Local. Opens a container for a caller that knows no more of the commit than its id.
[[nodiscard]] OpenedContainer open_container(fs::FileSystem& file_system, const TagPath& place, const Id128& commit_id,
                                             LogicalRank logical_rank);

}  // namespace kedge::persist

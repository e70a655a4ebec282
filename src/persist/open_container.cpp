#include "persist/open_container.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/attempt.hpp"
#include "base/text.hpp"
#include "persist/tag_directory.hpp"

namespace kedge::persist {
namespace {

using Problem = ContainerProblem::Kind;
using FileKind = fs::FileStatus::Kind;

[[noreturn]] void throw_container_error(ContainerProblem problem, ErrorCode code, std::string message,
                                        const std::string& path) {
  throw ContainerError(std::move(problem), Failure{code, std::move(message), -1, path, 0});
}

[[noreturn]] void throw_container_error(Problem kind, std::string message, const std::string& path) {
  throw_container_error({.kind = kind}, ErrorCode::corrupt, std::move(message), path);
}

// Opening refuses a link in the file's own place; the directories on the way are checked here.
void require_directories(fs::FileSystem& file_system, const std::string& tag_directory, const std::string& file,
                         const std::string& shown) {
  for (std::size_t slash = file.find('/'); slash != std::string::npos; slash = file.find('/', slash + 1)) {
    const std::string where = file.substr(0, slash);
    const auto status = file_system.status(fs::join(tag_directory, where));
    if (!status) {
      throw_container_error({.kind = Problem::missing_directory, .problem_path = where}, ErrorCode::not_found,
                            compose("the container is missing, and so is its directory {}", where), shown);
    }
    if (status->kind == FileKind::directory) continue;
    const bool is_link = status->kind == FileKind::link;
    throw_container_error(
        {.kind = is_link ? Problem::link : Problem::not_a_directory, .problem_path = where}, ErrorCode::io,
        compose("{} is {}", where,
                is_link ? "a symbolic link, which is not followed" : "not a directory, and the container is missing"),
        shown);
  }
}

std::vector<std::byte> first_bytes(fs::ByteAccess& bytes, std::uint64_t size_bytes) {
  std::vector<std::byte> first(std::min<std::uint64_t>(size_bytes, format::kSuperblockBytes));
  bytes.read(0, first);
  return first;
}

/// Runs a reader's step, and makes its damage this kind of error.
template <class Step>
auto read_checked(Step&& step) {
  try {
    return std::forward<Step>(step)();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::corrupt) throw;
    throw ContainerError({}, error.failure());
  }
}

// The file's CRC says nothing of the superblock, whatever is in it: it ends with its own. So every field counts.
void require_identity(const format::Superblock& superblock, const format::ManifestHead& head, LogicalRank logical_rank,
                      const std::string& path) {
  if (superblock.commit == head.commit && superblock.logical_rank == logical_rank) return;
  throw_container_error(
      {.kind = Problem::identity, .found_superblock = superblock}, ErrorCode::corrupt,
      compose("it is the container of rank {} of {} (generation {}, commit {})", superblock.logical_rank.value,
              superblock.commit.tag, superblock.commit.generation, to_string(superblock.commit.id).substr(0, 8)),
      path);
}

void require_commit(bool is_it, const std::string& path) {
  if (!is_it) refuse(ErrorCode::corrupt, "it is the manifest of another commit", path);
}

template <class IsIt>
OpenedContainer open_through_manifest(fs::FileSystem& file_system, const TagPath& tag_path, LogicalRank logical_rank,
                                      IsIt&& is_it) {
  const OpenedManifest manifest = open_manifest(file_system, tag_path);
  const format::ManifestHead& head = manifest.reader->head();
  const std::string path = fs::join(tag_path.for_messages(), kManifestFile);
  require_commit(is_it(head.commit), path);
  if (logical_rank.value >= head.commit.world_size) {
    refuse(ErrorCode::corrupt,
           compose("the commit has {} ranks; there is no rank {}", head.commit.world_size, logical_rank.value), path);
  }
  return open_container(file_system, tag_path, head, manifest.reader->row(logical_rank), logical_rank);
}

}  // namespace

OpenedManifest open_manifest(fs::FileSystem& file_system, const TagPath& tag_path) {
  OpenedManifest opened;
  auto file = file_system.open(fs::join(tag_path.directory, kManifestFile), fs::Access::read);
  const std::uint64_t size_bytes = file->status().size_bytes;
  opened.bytes = std::move(file);
  opened.reader = std::make_unique<format::ManifestReader>(*opened.bytes, size_bytes,
                                                           fs::join(tag_path.for_messages(), kManifestFile));
  return opened;
}

OpenedContainer open_checked_container(std::unique_ptr<fs::ByteAccess> bytes, std::uint64_t size_bytes,
                                       const std::string& path, const format::ManifestHead& head,
                                       const format::ShardRow& row, LogicalRank logical_rank) {
  const std::vector<std::byte> first = first_bytes(*bytes, size_bytes);
  const bool whole = first.size() == format::kSuperblockBytes;
  if (whole && format::is_unsealed(first)) throw_container_error(Problem::unsealed, "its first bytes are zeros", path);
  // Whose it is says more than its size: two swapped ranks often differ in both.
  if (whole)
    require_identity(read_checked([&] { return format::decode_superblock(first, path); }), head, logical_rank, path);
  if (size_bytes != row.size_bytes) {
    throw_container_error({.kind = Problem::size, .size_bytes = size_bytes}, ErrorCode::corrupt,
                          compose("the container has {} bytes, but the manifest says {}", size_bytes, row.size_bytes),
                          path);
  }
  OpenedContainer container{row, path, std::move(bytes), nullptr};
  container.reader = read_checked(
      [&] { return std::make_unique<format::ContainerReader>(*container.bytes, size_bytes, container.path); });
  const format::Superblock& superblock = container.reader->superblock();
  const bool same_index = superblock.index_offset == row.index_offset && superblock.index_size == row.index_size &&
                          superblock.index_crc == row.index_crc;
  if (same_index && container.reader->file_crc() == row.crc) return container;
  throw_container_error(Problem::content, "it is intact, but not the container that the manifest lists", path);
}

OpenedContainer open_container(fs::FileSystem& file_system, const TagPath& tag_path, const format::ManifestHead& head,
                               const format::ShardRow& row, LogicalRank logical_rank) {
  const std::string shown = fs::join(tag_path.for_messages(), row.file);
  if (row.file != container_file(logical_rank)) {  // no name that leads out of the directory is ever opened
    throw_container_error(
        Problem::file_name,
        compose("the manifest gives an unexpected file name for the container of rank {}", logical_rank.value), shown);
  }
  require_directories(file_system, tag_path.directory, row.file, shown);
  const std::string path = fs::join(tag_path.directory, row.file);
  if (!file_system.status(path)) {
    throw_container_error({.kind = Problem::missing}, ErrorCode::not_found, "the container is missing", shown);
  }
  auto file = file_system.open(path, fs::Access::read);
  const std::uint64_t size_bytes = file->status().size_bytes;
  return open_checked_container(std::move(file), size_bytes, shown, head, row, logical_rank);
}

OpenedContainer open_container(fs::FileSystem& file_system, const TagPath& tag_path, const CommitHead& commit,
                               LogicalRank logical_rank) {
  return open_through_manifest(file_system, tag_path, logical_rank,
                               [&](const CommitHead& found) { return found == commit; });
}

OpenedContainer open_container(fs::FileSystem& file_system, const TagPath& tag_path, const Id128& commit_id,
                               LogicalRank logical_rank) {
  return open_through_manifest(file_system, tag_path, logical_rank,
                               [&](const CommitHead& found) { return found.id == commit_id; });
}

}  // namespace kedge::persist

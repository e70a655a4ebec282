#include "tools/tag_reader.hpp"

#include "base/text.hpp"
#include "persist/tag_directory.hpp"
#include "tools/examine.hpp"
#include "tools/table.hpp"
#include "tools/words.hpp"

namespace kedge::tools {
namespace {

using Kind = fs::FileStatus::Kind;

[[noreturn]] void refuse(ErrorCode code, std::string message, const std::string& path) {
  throw Error(Failure{code, std::move(message), -1, path, 0});
}

// Each directory on the way: HDF5 would follow a link, Kedge does not.
void require_directories(fs::FileSystem& file_system, const std::string& tag_directory, const std::string& file,
                         const std::string& shown) {
  for (std::size_t slash = file.find('/'); slash != std::string::npos; slash = file.find('/', slash + 1)) {
    const auto status = file_system.status(fs::join(tag_directory, file.substr(0, slash)));
    if (!status) refuse(ErrorCode::corrupt, "missing, and so is its directory", shown);
    if (status->kind == Kind::link) {
      refuse(ErrorCode::io, compose("{} is a symbolic link, which is not followed", file.substr(0, slash)), shown);
    }
    if (status->kind != Kind::directory) {
      refuse(ErrorCode::corrupt, compose("missing: {} is no directory", file.substr(0, slash)), shown);
    }
  }
}

void require_size(std::uint64_t size_bytes, const format::ShardRow& row, const std::string& shown) {
  if (size_bytes == row.size_bytes) return;
  refuse(ErrorCode::corrupt,
         size_bytes < row.size_bytes
             ? compose("truncated: {} of its {} bytes are left", size_bytes, row.size_bytes)
             : compose("{} bytes were appended to its {}", size_bytes - row.size_bytes, row.size_bytes),
         shown);
}

void require_identity(const format::Superblock& superblock, const format::ManifestHead& head, LogicalRank rank,
                      const std::string& shown) {
  // The file's CRC says nothing of the superblock, whatever is in it: it ends with its own.
  const bool same_commit = superblock.commit == head.commit;
  if (same_commit && superblock.logical_rank == rank) return;
  std::string whose = compose("of rank {}", superblock.logical_rank.value);
  if (!same_commit) {
    whose += compose(" of {} (generation {}, commit {})", printable(superblock.commit.tag),
                     superblock.commit.generation, short_id(superblock.commit.id));
  }
  if (superblock.commit.run_id != head.commit.run_id) whose += " of another run";
  refuse(ErrorCode::corrupt, compose("swapped: it is the container {}", whose), shown);
}

}  // namespace

OpenedManifest open_manifest(fs::FileSystem& file_system, const TagPlace& place) {
  OpenedManifest opened;
  opened.entry = persist::read_tag(file_system, place.prefix, place.directory);
  const std::string path = fs::join(fs::join(place.prefix, place.directory), persist::kManifestFile);
  opened.file = file_system.open(path, fs::Access::read);
  opened.reader = std::make_unique<format::ManifestReader>(*opened.file, opened.file->status().size_bytes,
                                                           fs::join(place.shown, persist::kManifestFile));
  return opened;
}

OpenedContainer open_container(fs::FileSystem& file_system, const TagPlace& place, const format::ManifestHead& head,
                               const format::ShardRow& row, LogicalRank rank) {
  const std::string shown = fs::join(place.shown, row.file);
  if (row.file != persist::container_file(rank)) {  // no name that leads out of the directory is ever opened
    refuse(ErrorCode::corrupt, compose("the manifest names another file for rank {} than Kedge does", rank.value),
           shown);
  }
  const std::string directory = fs::join(place.prefix, place.directory);
  require_directories(file_system, directory, row.file, shown);
  const std::string path = fs::join(directory, row.file);
  const auto status = file_system.status(path);
  if (!status) refuse(ErrorCode::corrupt, "missing", shown);
  OpenedFile opened = open_file(file_system, path);
  // Whose it is says more than its size: two swapped ranks often differ in both.
  if (opened.kind == FileKind::unsealed) refuse(ErrorCode::corrupt, "its first bytes are zeros", shown);
  if (opened.kind == FileKind::other_version) throw refusal(opened.kind, shown);
  if (opened.first.size() == format::kSuperblockBytes) {
    require_identity(format::decode(opened.first, shown), head, rank, shown);
  }
  require_size(opened.size_bytes, row, shown);
  OpenedContainer container;
  container.file = std::move(opened.file);
  container.reader = std::make_unique<format::ContainerReader>(*container.file, opened.size_bytes, shown);
  const format::Superblock& superblock = container.reader->superblock();
  const bool same_index = superblock.index_offset == row.index_offset && superblock.index_size == row.index_size &&
                          superblock.index_crc == row.index_crc;
  if (same_index && container.reader->file_crc() == row.crc) return container;
  refuse(ErrorCode::corrupt, "its content is not what the manifest was made for, though whole in itself", shown);
}

}  // namespace kedge::tools

#include "persist/container_source.hpp"

#include <array>

#include "base/text.hpp"
#include "format/container_reader.hpp"
#include "kedge/error.hpp"
#include "persist/tag_directory.hpp"

namespace kedge::persist {
namespace {

[[noreturn]] void refuse(const std::string& path, std::string message) {
  throw Error(Failure{ErrorCode::corrupt, std::move(message), -1, path, 0});
}

format::ShardRow row_of(fs::FileSystem& file_system, const std::string& tag_directory, const Id128& commit_id,
                        LogicalRank logical_rank) {
  const std::string path = fs::join(tag_directory, kManifestFile);
  const auto file = file_system.open(path, fs::Access::read);
  const format::ManifestReader manifest(*file, file->status().size_bytes, path);
  if (manifest.head().commit.id != commit_id) refuse(path, "it is the manifest of another commit");
  if (logical_rank.value >= manifest.head().commit.world_size) {
    refuse(path, compose("the commit has {} ranks, none is {}", manifest.head().commit.world_size, logical_rank.value));
  }
  format::ShardRow row = manifest.row(logical_rank);
  // Names are Kedge's own, inside the directory: what else a manifest says is not followed.
  if (row.file != container_file(logical_rank))
    refuse(path, compose("the container of rank {} has a strange name", logical_rank.value));
  return row;
}

// Opening refuses a link in the file's place; the directories on the way are looked at here.
const std::string& on_real_directories(fs::FileSystem& file_system, const std::string& tag_directory,
                                       const std::string& file) {
  for (std::size_t slash = file.find('/'); slash != std::string::npos; slash = file.find('/', slash + 1)) {
    const std::string directory = fs::join(tag_directory, file.substr(0, slash));
    const auto status = file_system.status(directory);
    if (status && status->kind != fs::FileStatus::Kind::directory) {
      throw Error(Failure{ErrorCode::io, "a link or file is in the place of a directory; it is not followed", -1,
                          directory, 0});
    }
  }
  return file;
}

}  // namespace

ContainerSource::ContainerSource(fs::FileSystem& file_system, const std::string& tag_directory, const Id128& commit_id,
                                 LogicalRank logical_rank)
    : row_(row_of(file_system, tag_directory, commit_id, logical_rank)),
      file_(file_system.open(fs::join(tag_directory, on_real_directories(file_system, tag_directory, row_.file)),
                             fs::Access::read)) {
  const std::uint64_t bytes = file_->status().size_bytes;
  if (bytes != row_.size_bytes) {
    refuse(path(), compose("the container has {} bytes, the manifest knows it with {}", bytes, row_.size_bytes));
  }
  const format::ContainerReader reader(*file_, bytes, path());
  const format::Superblock& superblock = reader.superblock();
  if (superblock.commit.id != commit_id || superblock.logical_rank != logical_rank) {
    refuse(path(), compose("it is the container of rank {} of {} (generation {})", superblock.logical_rank.value,
                           superblock.commit.tag, superblock.commit.generation));
  }
  if (superblock.index_offset != row_.index_offset || superblock.index_size != row_.index_size ||
      superblock.index_crc != row_.index_crc) {
    refuse(path(), "its index is not the one that the manifest knows");
  }
}

}  // namespace kedge::persist

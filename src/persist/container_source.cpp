#include "persist/container_source.hpp"

#include <array>

#include "base/text.hpp"
#include "format/container_reader.hpp"
#include "kedge/error.hpp"
#include "persist/tag_folder.hpp"

namespace kedge::persist {
namespace {

[[noreturn]] void refuse(const std::string& path, std::string message) {
  throw Error(Failure{ErrorCode::corrupt, std::move(message), -1, path, 0});
}

format::ShardRow row_of(fs::FileSystem& file_system, const std::string& tag_folder, const Id128& commit_id,
                        LogicalRank logical_rank) {
  const std::string path = fs::join(tag_folder, kMasterFile);
  const auto file = file_system.open(path, fs::Access::read);
  const format::MasterReader master(*file, file->status().size_bytes, path);
  if (master.head().commit_id != commit_id) refuse(path, "it is the master of another commit");
  if (logical_rank.value >= master.head().world_size) {
    refuse(path, compose("the commit has {} ranks, none is {}", master.head().world_size, logical_rank.value));
  }
  format::ShardRow row = master.row(logical_rank);
  // Names are Kedge's own, inside the folder: what else a master says is not followed.
  if (row.file != container_file(logical_rank))
    refuse(path, compose("the container of rank {} has a strange name", logical_rank.value));
  return row;
}

}  // namespace

ContainerSource::ContainerSource(fs::FileSystem& file_system, const std::string& tag_folder, const Id128& commit_id,
                                 LogicalRank logical_rank)
    : row_(row_of(file_system, tag_folder, commit_id, logical_rank)),
      file_(file_system.open(fs::join(tag_folder, row_.file), fs::Access::read)) {
  const std::uint64_t bytes = file_->status().size_bytes;
  if (bytes != row_.size_bytes) {
    refuse(path(), compose("the container has {} bytes, the master knows it with {}", bytes, row_.size_bytes));
  }
  const format::ContainerReader reader(*file_, bytes, path());
  const format::Superblock& superblock = reader.superblock();
  if (superblock.commit_id != commit_id || superblock.logical_rank != logical_rank) {
    refuse(path(), compose("it is the container of rank {} of {} (generation {})", superblock.logical_rank.value,
                           superblock.tag, superblock.generation));
  }
  if (superblock.index_offset != row_.index_offset || superblock.index_size != row_.index_size ||
      superblock.index_crc != row_.index_crc) {
    refuse(path(), "its index is not the one that the master knows");
  }
}

}  // namespace kedge::persist

#include "recovery/check.hpp"

#include <vector>

#include "format/container_reader.hpp"
#include "format/set_descriptor.hpp"
#include "kedge/error.hpp"

namespace kedge::recovery {
namespace {

[[noreturn]] void refuse(const std::string& what, const std::string& path) {
  throw Error(Failure{ErrorCode::corrupt, what, -1, path, 0});
}

void check_container(fs::ByteAccess& bytes, LogicalRank logical_rank, const store::FileKey& key,
                     std::uint64_t size_bytes, const std::string& path) {
  const format::ContainerReader reader(bytes, size_bytes, path);
  if (reader.superblock().commit.id != key.commit_id || reader.superblock().logical_rank != logical_rank) {
    refuse("it is the container of another commit or rank", path);
  }
  const auto damages = reader.verify();
  if (!damages.empty()) refuse(damages.front().what + " is damaged", path);
}

void check_parity(fs::ByteAccess& bytes, const store::FileKey& key, std::uint64_t size_bytes, const std::string& path) {
  const format::SetDescriptor set = header_of_parity(bytes, key, size_bytes, path);
  if (bytes.checksum(format::kSuperblockBytes, set.parity_bytes, 0) != set.parity_crc) {
    refuse("the parity is damaged", path);
  }
}

}  // namespace

format::SetDescriptor header_of_parity(fs::ByteAccess& bytes, const store::FileKey& key, std::uint64_t size_bytes,
                                       const std::string& path) {
  format::SetDescriptorBytes head{};
  (void)bytes.copy_out(0, head, 0);
  format::SetDescriptor set = format::decode_set(head, path);
  if (set.kind != format::SetFileKind::parity || set.commit_id != key.commit_id ||
      set.protection_id != key.protection_id || set.parity_bytes + format::kSuperblockBytes != size_bytes) {
    refuse("it is not the parity of this commit", path);
  }
  return set;
}

void check_file(fs::ByteAccess& bytes, store::FileKind kind, LogicalRank logical_rank, const store::FileKey& key,
                std::uint64_t size_bytes, const std::string& path) {
  if (kind == store::FileKind::container) check_container(bytes, logical_rank, key, size_bytes, path);
  else check_parity(bytes, key, size_bytes, path);
}

}  // namespace kedge::recovery

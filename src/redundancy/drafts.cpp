#include "redundancy/drafts.hpp"

#include <algorithm>
#include <utility>

#include "base/attempt.hpp"
#include "base/checksum.hpp"
#include "comm/vote.hpp"

namespace kedge::redundancy {
namespace {

/// How many of `length` bytes at `offset` lie in the head.
std::uint64_t in_head(std::uint64_t offset, std::uint64_t length) {
  return offset >= format::kSuperblockBytes ? 0 : std::min(length, format::kSuperblockBytes - offset);
}

}  // namespace

std::uint32_t Draft::copy_in(std::uint64_t offset, std::span<const std::byte> bytes, std::uint32_t crc) {
  const std::uint64_t head = in_head(offset, bytes.size());
  if (head != 0) {
    std::copy_n(bytes.begin(), head, head_.begin() + static_cast<std::ptrdiff_t>(offset));
    crc = crc32c(bytes.first(head), crc);
  }
  if (head == bytes.size()) return crc;
  return file_.bytes().copy_in(offset + head, bytes.subspan(head), crc);
}

std::uint32_t Draft::copy_out(std::uint64_t offset, std::span<std::byte> bytes, std::uint32_t crc) {
  const std::uint64_t head = in_head(offset, bytes.size());
  if (head != 0) {
    std::copy_n(head_.begin() + static_cast<std::ptrdiff_t>(offset), head, bytes.begin());
    crc = crc32c(bytes.first(head), crc);
  }
  if (head == bytes.size()) return crc;
  return file_.bytes().copy_out(offset + head, bytes.subspan(head), crc);
}

std::uint32_t Draft::checksum(std::uint64_t offset, std::uint64_t length, std::uint32_t crc) {
  const std::uint64_t head = in_head(offset, length);
  if (head != 0) crc = crc32c(std::span(head_).subspan(offset, head), crc);
  return head == length ? crc : file_.bytes().checksum(offset + head, length - head, crc);
}

Draft& Drafts::begin(store::FileKind kind, const store::FileKey& key, std::uint64_t generation,
                     std::uint64_t size_bytes, Storage storage) {
  store::StoreFile& file = store_.begin(kind, storage == Storage::before ? size_bytes : 0);
  drafts_.emplace_back(file, key, generation);
  if (storage == Storage::before) file.set_size(size_bytes);
  else file.grow_as_written(size_bytes);
  return drafts_.back();
}

store::StoreFile& Drafts::pin(store::FileKind kind, LogicalRank logical_rank, const store::FileKey& key) {
  store::StoreFile& file = store_.pin(kind, logical_rank, key);
  pinned_.push_back(&file);
  return file;
}

std::optional<Failure> Drafts::vote(const std::optional<Failure>& local) {
  auto failure = comm::vote(communicator_, local, Deadline::after(patience_));
  if (failure) give_up();
  return failure;
}

std::optional<Failure> Drafts::seal(const std::optional<Failure>& local) {
  std::optional<Failure> mine = local;
  if (!mine) {
    mine = attempt([&] {
      for (Draft& draft : drafts_) {
        draft.file().check_present();
        draft.file().flush(durable_);
      }
    });
  }
  if (auto failure = vote(mine)) return failure;
  mine = attempt([&] {
    for (Draft& draft : drafts_) {
      draft.file().check_present();
      draft.file().bytes().copy_in(0, draft.head(), 0);
      draft.file().flush(durable_);
    }
  });
  if (auto failure = vote(mine)) {
    (void)comm::vote(communicator_, {}, Deadline::after(patience_));  // nobody goes on before every rank has unsealed
    return failure;
  }
  for (Draft& draft : drafts_) store_.sealed(draft.file(), draft.key(), draft.generation());
  drafts_.clear();
  unpin();
  return std::nullopt;
}

/// What cannot be unsealed is removed by discard; what even that cannot remove is found again at the next start, where
/// its protection or container counts only together with what belongs to it.
void Drafts::give_up() {
  for (Draft& draft : drafts_) (void)attempt([&] { store_.discard(draft.file()); });
  drafts_.clear();
  unpin();
}

void Drafts::unpin() {
  for (store::StoreFile* file : pinned_) store_.unpin(*file);
  pinned_.clear();
}

}  // namespace kedge::redundancy

#include "store/seal_transaction.hpp"

#include <algorithm>
#include <utility>

#include "base/attempt.hpp"
#include "base/invariant.hpp"
#include "checksum/crc32c.hpp"
#include "store/check_space_on_nodes.hpp"

namespace kedge::store {
namespace {

/// How many of `length` bytes at `offset` lie in the first 4096.
std::uint64_t count_in_head(std::uint64_t offset, std::uint64_t length) {
  return offset >= format::kSuperblockBytes ? 0 : std::min(length, format::kSuperblockBytes - offset);
}

}  // namespace

std::uint32_t UnsealedFile::write_with_crc(std::uint64_t offset, std::span<const std::byte> bytes, std::uint32_t crc) {
  const std::uint64_t head = count_in_head(offset, bytes.size());
  if (head != 0) {
    std::copy_n(bytes.begin(), head, head_.begin() + static_cast<std::ptrdiff_t>(offset));
    crc = crc32c(bytes.first(head), crc);
  }
  if (head == bytes.size()) return crc;
  return file_.bytes().write_with_crc(offset + head, bytes.subspan(head), crc);
}

std::uint32_t UnsealedFile::write_xor(std::uint64_t offset, std::span<const std::span<const std::byte>> from,
                                      std::uint32_t crc) {
  if (count_in_head(offset, from.front().size()) != 0) return ByteAccess::write_xor(offset, from, crc);
  return file_.bytes().write_xor(offset, from, crc);
}

std::uint32_t UnsealedFile::read_with_crc(std::uint64_t offset, std::span<std::byte> bytes, std::uint32_t crc) {
  const std::uint64_t head = count_in_head(offset, bytes.size());
  if (head != 0) {
    std::copy_n(head_.begin() + static_cast<std::ptrdiff_t>(offset), head, bytes.begin());
    crc = crc32c(bytes.first(head), crc);
  }
  if (head == bytes.size()) return crc;
  return file_.bytes().read_with_crc(offset + head, bytes.subspan(head), crc);
}

void UnsealedFile::read(std::uint64_t offset, std::span<std::byte> bytes) {
  const std::uint64_t head = count_in_head(offset, bytes.size());
  if (head != 0) std::copy_n(head_.begin() + static_cast<std::ptrdiff_t>(offset), head, bytes.begin());
  if (head != bytes.size()) file_.bytes().read(offset + head, bytes.subspan(head));
}

std::uint32_t UnsealedFile::checksum(std::uint64_t offset, std::uint64_t length, std::uint32_t crc) {
  const std::uint64_t head = count_in_head(offset, length);
  if (head != 0) crc = crc32c(std::span(head_).subspan(offset, head), crc);
  return head == length ? crc : file_.bytes().checksum(offset + head, length - head, crc);
}

UnsealedFile& SealTransaction::begin_file(FileKind kind, const FileKey& key, std::uint64_t generation,
                                          std::uint64_t size_bytes, Storage storage, std::optional<LogicalRank> owner) {
  invariant(!is_ready_, "no file is begun once all ranks are ready to seal");
  invariant(size_bytes >= format::kSuperblockBytes, "a file of the store has room for its first 4096 bytes");
  const std::uint64_t taken_at_once = storage == Storage::before ? size_bytes : 0;
  StoreFile& file = store_.new_files.begin_file({kind, taken_at_once, owner});
  UnsealedFile& draft = unsealed_files_.emplace_back(file, key, generation);
  if (storage == Storage::before) file.set_size(size_bytes);
  else file.grow_as_written(size_bytes);
  return draft;
}

UnsealedFile& SealTransaction::begin_unsized_file(FileKind kind, const FileKey& key, std::uint64_t generation,
                                                  std::uint64_t expected_bytes) {
  invariant(!is_ready_, "no file is begun once all ranks are ready to seal");
  return unsealed_files_.emplace_back(store_.new_files.begin_file({kind, expected_bytes}), key, generation);
}

std::optional<Failure> SealTransaction::begin_on_all_ranks(std::span<const PlannedFile> planned,
                                                           const std::function<void()>& begin) {
  std::uint64_t additional_bytes = 0;
  auto local = attempt([&] { additional_bytes = store_.new_files.additional_bytes(planned); });
  const bool takes = additional_bytes != 0;
  const auto has_changed = [&] {
    if (!takes) return false;  // the range has begun already
    const std::uint64_t before = additional_bytes;
    return !attempt([&] { additional_bytes = store_.new_files.additional_bytes(planned); }) &&
           additional_bytes != before;
  };
  if (!local && !takes) local = attempt(begin);
  auto [failure, any_takes] = group_.vote_with_request(local, takes);
  if (!failure && any_takes) {
    failure = check_space_on_nodes(group_, store_, additional_bytes);
    // Retries if another thread finished a file meanwhile: space that was counted as missing is then taken by that
    // file.
    if (failure && failure->code == ErrorCode::no_space && group_.any(has_changed())) {
      failure = check_space_on_nodes(group_, store_, additional_bytes);
    }
    if (!failure) failure = group_.vote(takes ? attempt(begin) : std::nullopt);
  }
  if (failure) abort();
  return failure;
}

StoreFile& SealTransaction::pin(FileKind kind, LogicalRank logical_rank, const FileKey& key) {
  return *pins_.emplace_back(store_.files, kind, logical_rank, key);
}

std::optional<Failure> SealTransaction::vote(const std::optional<Failure>& local) {
  auto failure = group_.vote(local);
  if (failure) abort();
  return failure;
}

std::optional<Failure> SealTransaction::vote_ready(const std::optional<Failure>& local) {
  invariant(!is_ready_, "a file is voted ready once");
  std::optional<Failure> mine = local;
  if (!mine) {
    mine = attempt([&] {
      for (UnsealedFile& draft : unsealed_files_) {
        draft.file().require_present();
        draft.file().flush(durable_);
      }
    });
  }
  auto failure = vote(mine);
  is_ready_ = !failure;
  return failure;
}

std::optional<Failure> SealTransaction::write_seals() {
  invariant(is_ready_, "nothing is sealed before all ranks voted ready");
  const auto local = attempt([&] {
    for (UnsealedFile& draft : unsealed_files_) {
      draft.file().require_present();
      draft.file().bytes().write_with_crc(0, draft.head(), 0);
      draft.file().flush(durable_);
    }
  });
  if (auto failure = vote(local)) {
    (void)group_.vote({});  // waits until every rank has unsealed
    return failure;
  }
  for (UnsealedFile& draft : unsealed_files_)
    store_.new_files.mark_sealed(draft.file(), draft.key(), draft.generation());
  unsealed_files_.clear();
  pins_.clear();
  is_ready_ = false;
  return std::nullopt;
}

std::optional<Failure> SealTransaction::seal(const std::optional<Failure>& local) {
  if (auto failure = vote_ready(local)) return failure;
  return write_seals();
}

/// Discards all files. discard() removes a file that cannot be unsealed. If that fails as well, the next start finds
/// the file, but counts a protection or container only if it is complete.
void SealTransaction::abort() {
  for (UnsealedFile& draft : unsealed_files_) {
    const auto failure = attempt([&] { store_.new_files.discard_file(draft.file()); });
    if (failure && !discard_failure_) discard_failure_ = failure;
  }
  unsealed_files_.clear();
  pins_.clear();
  is_ready_ = false;
}

}  // namespace kedge::store

#include "store/store_file.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "format/on_disk.hpp"
#include "fs/linux.hpp"

namespace kedge::store {
namespace {

constexpr std::uint64_t kAtOnceBytes = std::uint64_t{4} << 20U;  // storage taken at once while writing
constexpr std::uint64_t kWorthACall = 16384;                     // copying less is faster than a system call

constexpr std::array<std::byte, format::kSuperblockBytes> kNoSuperblock{};

std::uint64_t round_up(std::uint64_t value, std::uint64_t unit) { return (value + unit - 1) / unit * unit; }

}  // namespace

StoreFile::StoreFile(std::unique_ptr<fs::File> file, bool memory_backed, const SpaceManager& space)
    : file_(std::move(file)), memory_backed_(memory_backed), space_(space) {
  // Reserves again to fill holes that a copying tool may have left: access through a mapping must not need storage.
  const fs::FileStatus status = file_->status();
  if (memory_backed_ && status.size_bytes != 0) {
    const std::uint64_t missing = status.size_bytes - std::min(status.size_bytes, status.allocated_bytes);
    const auto admitted = missing == 0 ? nullptr : space_.admit_bytes(missing);
    (void)take_storage(status.size_bytes, missing);
  }
  set_used_size(status.size_bytes);
}

StoreFile::~StoreFile() { unmap(); }

/// Maps the file, all of which is reserved, with this size.
void StoreFile::set_used_size(std::uint64_t size_bytes) {
  if (!memory_backed_) {
    if (!combiner_) {
      combiner_ = std::make_unique<WriteCombiner>(*file_);
      file_registration_ = std::make_shared<device::FileRegistration>();
    }
    if (size_bytes != size_bytes_) end_registrations();
  } else if (size_bytes == 0) {
    unmap();
  } else if (!mapping_ || size_bytes != size_bytes_) {
    end_registrations();
    mapping_ = file_->map(size_bytes);
    memory_registration_ = std::make_shared<device::MemoryRegistration>();
  }
  size_bytes_ = size_bytes;
}

void StoreFile::reserve(std::uint64_t size_bytes) {
  if (size_bytes <= size_bytes_) return;
  if (size_bytes_ != 0) require_present();  // growing would hide a truncation by another process
  const std::uint64_t whole_pages = round_up(size_bytes, fs::kPageBytes);
  const auto admitted = space_.admit_bytes(whole_pages - size_bytes_);
  set_new_from(take_storage(whole_pages, whole_pages - size_bytes_), whole_pages);
  set_used_size(whole_pages);
}

/// Storage reserved ahead must not be missing for another rank of the node.
std::uint64_t StoreFile::reserve_ahead(std::uint64_t size_bytes, std::uint64_t wished_bytes) {
  if (size_bytes <= size_bytes_) return size_bytes_;
  if (wished_bytes > size_bytes_ && space_.has_ample_space(wished_bytes - size_bytes_)) {
    return ContainerTarget::reserve_ahead(size_bytes, wished_bytes);
  }
  reserve(size_bytes);
  return size_bytes;
}

void StoreFile::set_new_from(std::uint64_t new_from, std::uint64_t size_bytes) noexcept {
  if (new_from < size_bytes) new_from_ = std::min<std::uint64_t>(new_from_, new_from);
}

/// Takes storage. Free space may have gone since it was checked, and quotas show only here.
std::uint64_t StoreFile::take_storage(std::uint64_t size_bytes, std::uint64_t additional_bytes) {
  try {
    return file_->reserve(size_bytes);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::no_space) space_.throw_refusal(error.failure(), additional_bytes);
    throw;
  }
}

void StoreFile::set_size(std::uint64_t size_bytes) {
  if (size_bytes == size_bytes_) return;
  if (size_bytes > size_bytes_) reserve(size_bytes);
  if (combiner_) combiner_->flush();
  // If truncation fails, file and mapping are unchanged. Otherwise the mapping reaches past the end, and is replaced
  // before its next use.
  end_registrations();
  file_->truncate(size_bytes);
  if (mapping_) drop_mapping();
  set_used_size(size_bytes);
}

void StoreFile::grow_as_written(std::uint64_t size_bytes) {
  if (!memory_backed_ || size_bytes_ != 0 || size_bytes < format::kSuperblockBytes) {
    set_size(size_bytes);
    return;
  }
  // Only huge pages are reserved under this admission; the rest was admitted for all ranks of the node together.
  const auto admitted = space_.admit_bytes(round_up(size_bytes, fs::kPageBytes));
  file_->truncate(size_bytes);
  if (const std::uint64_t had = file_->reserve_huge_pages(size_bytes); had != 0 && had + kAtOnceBytes > size_bytes) {
    (void)take_storage(size_bytes, size_bytes - had);
    set_new_from(had, size_bytes);
    set_used_size(size_bytes);
    return;
  }
  size_bytes_ = size_bytes;
  is_growing_ = true;
  written_ = {};
  bytes().write_with_crc(0, kNoSuperblock,
                         0);  // unsealed, so not written by others, but must not be a hole
}

void StoreFile::unseal_and_free() {
  unseal();
  // Combined writes of a failed container may be lost. Truncates in any case, since a partly failed reservation may
  // have grown the file beyond size_bytes().
  end_registrations();
  file_->truncate(0);
  is_growing_ = false;
  set_used_size(0);
}

/// A new size means a new mapping, which devices must register again.
void StoreFile::end_registrations() noexcept {
  if (const auto access = std::exchange(memory_registration_, nullptr)) access->end();
  if (file_registration_) file_registration_->end();
  fill_count_ = 0;
}

void StoreFile::unmap() noexcept {
  end_registrations();
  mapping_.reset();
}

/// If mapping fails, the file counts as empty: access is then an error instead of a signal.
void StoreFile::drop_mapping() {
  unmap();
  size_bytes_ = 0;
}

void StoreFile::require_present() {
  const fs::FileStatus now = file_->status();
  if (now.links == 0) {
    throw Error(Failure{ErrorCode::io,
                        "another process removed a file from the node-local store; do not touch the store's directory "
                        "while the job runs, or set store.path to one that is not cleaned automatically",
                        -1, path(), 0});
  }
  // A mapped file had all of its storage, so a hole means that another process truncated it, even if it was extended
  // again.
  if (now.size_bytes < size_bytes_ || (mapping_ && now.allocated_bytes < size_bytes_)) throw_truncated();
  if (mapping_ && !mapping_->is_intact()) {
    throw Error(Failure{ErrorCode::io,
                        "a file on the node-local store was truncated by another process while it was in use, or its "
                        "memory failed; check this node's memory if nobody touched the store's directory",
                        -1, path(), 0});
  }
}

void StoreFile::throw_truncated() const {
  throw Error(Failure{ErrorCode::io,
                      "a file on the node-local store was truncated by another process; do not touch the store's "
                      "directory while the job runs",
                      -1, path(), 0});
}

fs::ByteAccess& StoreFile::bytes() {
  if (combiner_) return *combiner_;
  if (!mapping_ && !is_growing_) {
    throw Error(Failure{ErrorCode::io,
                        "a file on the node-local store is not mapped; abandon the "
                        "checkpoint and create another",
                        -1, path(), 0});
  }
  return memory_access_;
}

/// Registration pays after two fills of the same size, which will probably recur.
device::HostMemory StoreFile::memory() noexcept {
  constexpr unsigned kFillsBefore = 2;
  if (!memory_registration_ || fill_count_ < kFillsBefore) return {};
  return {mapping_->memory(), memory_registration_};
}

device::FileTarget StoreFile::direct_file() noexcept {
  return file_registration_ ? device::FileTarget{file_.get(), file_registration_} : device::FileTarget{};
}

/// Within the mapping all storage is reserved, so pwrite cannot run out of it.
fs::ByteAccess& StoreFile::access_for_write(std::uint64_t offset, std::uint64_t length) const noexcept {
  if (is_growing_) return *file_;
  const bool is_new = offset >= new_from_ && length >= kWorthACall && offset + length <= mapping_->bytes().size();
  return is_new ? static_cast<fs::ByteAccess&>(*file_) : *mapping_;
}

/// Runs a write of `length` bytes and explains a lack of space.
template <class Write>
std::uint32_t StoreFile::with_space_message(std::uint64_t length, Write&& write) const {
  try {
    return write();
  } catch (const Error& error) {
    if (error.code() == ErrorCode::no_space) space_.throw_refusal(error.failure(), length);
    throw;
  }
}

void StoreFile::add_written(std::uint64_t offset, std::uint64_t length) {
  if (!is_growing_) return;
  const std::lock_guard guard(written_mutex_);
  written_.add(offset, length);
}

std::uint32_t StoreFile::MemoryAccess::write_with_crc(std::uint64_t offset, std::span<const std::byte> bytes,
                                                      std::uint32_t crc) {
  file_.add_written(offset, bytes.size());
  return file_.with_space_message(
      bytes.size(), [&] { return file_.access_for_write(offset, bytes.size()).write_with_crc(offset, bytes, crc); });
}

std::uint32_t StoreFile::MemoryAccess::write_xor(std::uint64_t offset, std::span<const std::span<const std::byte>> from,
                                                 std::uint32_t crc) {
  const std::size_t length = from.front().size();
  file_.add_written(offset, length);
  return file_.with_space_message(length,
                                  [&] { return file_.access_for_write(offset, length).write_xor(offset, from, crc); });
}

std::uint32_t StoreFile::MemoryAccess::read_with_crc(std::uint64_t offset, std::span<std::byte> bytes,
                                                     std::uint32_t crc) {
  return file_.is_growing_ ? file_.file_->read_with_crc(offset, bytes, crc)
                           : file_.mapping_->read_with_crc(offset, bytes, crc);
}

void StoreFile::MemoryAccess::read(std::uint64_t offset, std::span<std::byte> bytes) {
  if (file_.is_growing_) file_.file_->read(offset, bytes);
  else file_.mapping_->read(offset, bytes);
}

std::uint32_t StoreFile::MemoryAccess::checksum(std::uint64_t offset, std::uint64_t length, std::uint32_t crc) {
  return file_.is_growing_ ? file_.file_->checksum(offset, length, crc) : file_.mapping_->checksum(offset, length, crc);
}

void StoreFile::prefault() noexcept {
  if (mapping_ && mapping_->prefault()) mark_filled();
}

std::span<const std::byte> StoreFile::mapped() const noexcept {
  return mapping_ ? mapping_->bytes() : std::span<const std::byte>{};
}

void StoreFile::flush(bool durable) {
  if (is_growing_) {
    // Truncation during writing leaves a hole, which the next write hides behind the old size.
    if (file_->status().allocated_bytes < written_.size_bytes()) throw_truncated();
    (void)take_storage(size_bytes_, 0);  // for bytes that were never written
    is_growing_ = false;
    set_used_size(size_bytes_);
  }
  if (file_registration_) file_registration_->end();
  if (combiner_) combiner_->flush();
  if (durable) file_->sync();
}

void StoreFile::unseal() {
  if (size_bytes_ < format::kSuperblockBytes) return;  // too short for a seal
  require_present();
  bytes().write_with_crc(0, kNoSuperblock, 0);
  if (!is_growing_) flush(!memory_backed_);
}

}  // namespace kedge::store

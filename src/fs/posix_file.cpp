#include "fs/posix_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "base/file_size_signal.hpp"
#include "base/text.hpp"
#include "checksum/crc32c.hpp"
#include "fs/huge_pages.hpp"
#include "fs/linux.hpp"
#include "fs/system_error.hpp"
#include "fs/transfer.hpp"

namespace kedge::fs {
namespace {

constexpr std::size_t kTransferBytes = std::size_t{4} << 20U;      // of one system call
constexpr std::size_t kDirectBytesMin = std::size_t{1} << 20U;     // smaller writes are faster through the page cache
constexpr std::uint64_t kReserveBytes = std::uint64_t{64} << 20U;  // of one fallocate, which a signal makes start again
constexpr std::uint64_t kFolioBytesMax = std::uint64_t{2} << 20U;

class PosixFile final : public File {
 public:
  PosixFile(Descriptor descriptor, std::string path, Access access, std::shared_ptr<DirectWriter> direct_writer)
      : descriptor_(std::move(descriptor)),
        path_(std::move(path)),
        access_(access),
        direct_writer_(std::move(direct_writer)) {}

  std::uint32_t write_with_crc(std::uint64_t offset, std::span<const std::byte> bytes, std::uint32_t crc) override {
    const ScopedFileSizeSignalBlock no_signal;
    if (is_direct(bytes.size())) return write_past_cache(offset, bytes, crc);
    return write_through_cache(offset, bytes, crc);
  }
  std::uint32_t read_with_crc(std::uint64_t offset, std::span<std::byte> bytes, std::uint32_t crc) override {
    for_each_piece(bytes.size(), kCachedPieceBytes, [&](std::uint64_t at, std::uint64_t length) {
      const auto chunk = bytes.subspan(at, length);
      read_at(offset + at, chunk);
      crc = crc32c(chunk, crc);
    });
    return crc;
  }
  void write(std::uint64_t offset, std::span<const std::byte> bytes) override {
    const ScopedFileSizeSignalBlock no_signal;
    // Direct writes copy the bytes anyway, and compute the checksum meanwhile.
    if (is_direct(bytes.size())) (void)write_past_cache(offset, bytes, 0);
    else write_at(offset, bytes);
  }
  void read(std::uint64_t offset, std::span<std::byte> bytes) override { read_at(offset, bytes); }
  std::uint32_t checksum(std::uint64_t offset, std::uint64_t length, std::uint32_t crc) override {
    std::vector<std::byte> buffer(std::min<std::uint64_t>(length, kCachedPieceBytes));
    for_each_piece(length, kCachedPieceBytes, [&](std::uint64_t at, std::uint64_t size) {
      crc = read_with_crc(offset + at, std::span(buffer).first(size), crc);
    });
    return crc;
  }

  const std::string& path() const noexcept override { return path_; }
  FileStatus status() override { return to_file_status(stat_descriptor(descriptor_, path_)); }
  std::uint64_t reserve(std::uint64_t size_bytes) override;
  std::uint64_t reserve_huge_pages(std::uint64_t size_bytes) override;
  void truncate(std::uint64_t size_bytes) override {
    const ScopedFileSizeSignalBlock no_signal;
    set_size(size_bytes);
  }
  bool enable_direct_writes() override;
  int direct_descriptor() override;
  void drop_cached_pages(std::uint64_t offset, std::uint64_t length) override;
  void sync() override {
    if (retry_interrupted([&] { return ::fsync(descriptor_.get()); }) != 0) {
      throw_system_error("sync the file", path_, errno);
    }
  }
  std::unique_ptr<Mapping> map(std::uint64_t size_bytes) override;

 private:
  [[nodiscard]] bool is_direct(std::size_t size_bytes) const noexcept {
    return direct_.is_valid() && size_bytes >= kDirectBytesMin;
  }
  std::uint32_t write_through_cache(std::uint64_t offset, std::span<const std::byte> bytes, std::uint32_t crc);
  std::uint32_t write_past_cache(std::uint64_t offset, std::span<const std::byte> bytes, std::uint32_t crc);
  void write_at(std::uint64_t offset, std::span<const std::byte> bytes);
  void read_at(std::uint64_t offset, std::span<std::byte> bytes);
  void set_size(std::uint64_t size_bytes);
  [[nodiscard]] Descriptor open_past_cache() const;
  [[nodiscard]] bool in_memory() const;
  [[nodiscard]] int allocate(std::uint64_t begin, std::uint64_t end);
  void write_zeros(std::uint64_t begin, std::uint64_t end);
  void require_reserved(const struct stat& info, std::uint64_t size_bytes) const;

  Descriptor descriptor_;
  std::string path_;
  Access access_;
  std::shared_ptr<DirectWriter> direct_writer_;
  Descriptor direct_;      // past the page cache; invalid without enable_direct_writes()
  Descriptor for_others_;  // past the page cache, for direct_descriptor() only
};

std::uint32_t PosixFile::write_through_cache(std::uint64_t offset, std::span<const std::byte> bytes,
                                             std::uint32_t crc) {
  for_each_piece(bytes.size(), kTransferBytes, [&](std::uint64_t at, std::uint64_t length) {
    const auto chunk = bytes.subspan(at, length);
    crc = crc32c(chunk, crc);
    write_at(offset + at, chunk);
  });
  return crc;
}

/// Writes whole blocks directly, and the rest at both ends through the cache, because it shares pages with other data.
std::uint32_t PosixFile::write_past_cache(std::uint64_t offset, std::span<const std::byte> bytes, std::uint32_t crc) {
  constexpr std::uint64_t kBlock = DirectWriter::kAlignmentBytes;
  const std::uint64_t head = (kBlock - offset % kBlock) % kBlock;
  const std::uint64_t body = (bytes.size() - head) / kBlock * kBlock;
  crc = write_through_cache(offset, bytes.first(head), crc);
  const DirectWriter::WriteRest write_rest = [this](std::uint64_t at, std::span<const std::byte> rest) {
    write_at(at, rest);
  };
  const DirectWriter::Target target{direct_.get(), path_, write_rest};
  const auto blocks = bytes.subspan(head, body);
  const auto written = direct_writer_->write(target, offset + head, blocks, crc);
  crc = written ? *written : write_through_cache(offset + head, blocks, crc);
  return write_through_cache(offset + head + body, bytes.subspan(head + body), crc);
}

/// Opens the same file again, not its name. tmpfs and others refuse O_DIRECT; nothing changes then.
bool PosixFile::enable_direct_writes() {
  if (access_ != Access::read_write) return false;
  if (!direct_.is_valid()) direct_ = open_past_cache();
  return direct_.is_valid();
}

Descriptor PosixFile::open_past_cache() const {
  const std::string same = compose("/proc/self/fd/{}", descriptor_.get());
  return Descriptor(retry_interrupted([&] { return ::open(same.c_str(), O_RDWR | O_DIRECT | O_CLOEXEC); }));
}

int PosixFile::direct_descriptor() {
  if (access_ != Access::read_write) return -1;
  if (!for_others_.is_valid()) for_others_ = open_past_cache();
  return for_others_.get();
}

/// The kernel's own direct writes flush and drop pages, other direct paths do not. The cache drops only whole folios,
/// which are aligned and at most 2 MiB.
void PosixFile::drop_cached_pages(std::uint64_t offset, std::uint64_t length) {
  const std::uint64_t begin = offset / kFolioBytesMax * kFolioBytesMax;
  const std::uint64_t end = (offset + length + kFolioBytesMax - 1) / kFolioBytesMax * kFolioBytesMax;
  const auto at = static_cast<off_t>(begin);
  const auto bytes = static_cast<off_t>(end - begin);
  constexpr unsigned kWritten = SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;
  if (retry_interrupted([&] { return ::sync_file_range(descriptor_.get(), at, bytes, kWritten); }) != 0 &&
      retry_interrupted([&] { return ::fdatasync(descriptor_.get()); }) != 0) {
    throw_system_error("write back the file's cached pages", path_, errno);
  }
  (void)::posix_fadvise(descriptor_.get(), at, bytes, POSIX_FADV_DONTNEED);
}

void PosixFile::write_at(std::uint64_t offset, std::span<const std::byte> bytes) {
  const auto done = transfer_all(bytes.size(), [&](std::size_t at, std::size_t left) {
    return ::pwrite(descriptor_.get(), bytes.data() + at, left, static_cast<off_t>(offset + at));
  });
  if (done.error != 0) throw_system_error("write", path_, done.error);
  if (done.bytes < bytes.size()) throw_system_error("write all bytes (short write)", path_, EIO);
}

void PosixFile::read_at(std::uint64_t offset, std::span<std::byte> bytes) {
  const auto done = transfer_all(bytes.size(), [&](std::size_t at, std::size_t left) {
    return ::pread(descriptor_.get(), bytes.data() + at, left, static_cast<off_t>(offset + at));
  });
  if (done.error != 0) throw_system_error("read", path_, done.error);
  if (done.bytes < bytes.size()) throw_truncated(path_, offset, bytes.size(), offset + done.bytes);
}

void PosixFile::set_size(std::uint64_t size_bytes) {
  if (retry_interrupted([&] { return ::ftruncate(descriptor_.get(), static_cast<off_t>(size_bytes)); }) != 0) {
    throw_system_error("set the file's size", path_, errno);
  }
}

bool PosixFile::in_memory() const {
  struct statfs filesystem {};
  return ::fstatfs(descriptor_.get(), &filesystem) == 0 && filesystem.f_type == kTmpfsMagic;
}

/// fallocate in steps; returns 0 or errno. glibc's posix_fallocate does not retry, and may only write zeros without
/// saying so.
int PosixFile::allocate(std::uint64_t begin, std::uint64_t end) {
  for (std::uint64_t at = begin; at < end; at += kReserveBytes) {
    const auto step = static_cast<off_t>(std::min(kReserveBytes, end - at));
    if (retry_interrupted([&] { return ::fallocate(descriptor_.get(), 0, static_cast<off_t>(at), step); }) != 0) {
      return errno;
    }
  }
  return 0;
}

void PosixFile::write_zeros(std::uint64_t begin, std::uint64_t end) {
  const std::vector<std::byte> zeros(std::min<std::uint64_t>(end - begin, kTransferBytes));
  for_each_piece(end - begin, kTransferBytes,
                 [&](std::uint64_t at, std::uint64_t length) { write_at(begin + at, std::span(zeros).first(length)); });
}

std::uint64_t PosixFile::reserve(std::uint64_t size_bytes) {
  const ScopedFileSizeSignalBlock no_signal;
  const struct stat info = stat_descriptor(descriptor_, path_);
  const auto old_size = static_cast<std::uint64_t>(info.st_size);
  // Skips fallocate if there are no holes: in memory it visits every existing page, each time a container grows. More
  // blocks than the size needs (huge pages) may hide a hole.
  const bool no_holes =
      static_cast<std::uint64_t>(info.st_blocks) * 512 == (old_size + kPageBytes - 1) / kPageBytes * kPageBytes;
  const bool memory = in_memory();
  std::uint64_t cleared_bytes = std::min(old_size, size_bytes);
  if (memory && size_bytes > old_size) cleared_bytes = allocate_huge_pages(descriptor_.get(), old_size, size_bytes);
  int error = allocate(memory && no_holes ? old_size : 0, size_bytes);
  if (error == ENOSYS || error == EINVAL) error = EOPNOTSUPP;  // sandboxes and filesystems in user space
  try {
    if (error == EOPNOTSUPP && size_bytes > old_size) {
      // Storage before old_size was already written; a late ENOSPC is then an error of pwrite, not a signal.
      write_zeros(old_size, size_bytes);
      error = 0;
    }
    if (error != 0 && error != EOPNOTSUPP) {
      throw_system_error(compose("reserve {} bytes", size_bytes), path_, error);
    }
  } catch (const Error&) {
    if (size_bytes > old_size) set_size(old_size);  // releases the partial allocation
    throw;
  }
  return cleared_bytes;
}

std::uint64_t PosixFile::reserve_huge_pages(std::uint64_t size_bytes) {
  const ScopedFileSizeSignalBlock no_signal;
  return in_memory() ? allocate_huge_pages(descriptor_.get(), 0, size_bytes) : 0;
}

/// In memory, accessing a hole of a full store raises a signal.
void PosixFile::require_reserved(const struct stat& info, std::uint64_t size_bytes) const {
  if (static_cast<std::uint64_t>(info.st_blocks) * 512 >= size_bytes || !in_memory()) return;
  throw Error(Failure{ErrorCode::bad_state, "the file has holes and cannot be mapped safely; reserve its space first",
                      -1, path_, 0});
}

std::unique_ptr<Mapping> PosixFile::map(std::uint64_t size_bytes) {
  const struct stat info = stat_descriptor(descriptor_, path_);
  require_within(path_, 0, size_bytes, static_cast<std::uint64_t>(info.st_size));
  require_reserved(info, size_bytes);
  if (size_bytes == 0) return make_posix_mapping(nullptr, 0, access_, path_);
  const int protection = access_ == Access::read ? PROT_READ : PROT_READ | PROT_WRITE;
  void* data = map_aligned(descriptor_.get(), protection, 0, size_bytes);
  if (data == MAP_FAILED) throw_system_error(compose("map {} bytes", size_bytes), path_, errno);
  return make_posix_mapping(static_cast<std::byte*>(data), size_bytes, access_, path_);
}

}  // namespace

Descriptor::~Descriptor() {
  if (fd_ >= 0) ::close(fd_);  // not retried after EINTR: the number may belong to another file by now
}

FileStatus to_file_status(const struct stat& info) noexcept {
  using Kind = FileStatus::Kind;
  FileStatus status;
  status.kind = S_ISREG(info.st_mode)   ? Kind::file
                : S_ISDIR(info.st_mode) ? Kind::directory
                : S_ISLNK(info.st_mode) ? Kind::link
                                        : Kind::other;
  status.size_bytes = static_cast<std::uint64_t>(info.st_size);
  status.owner = info.st_uid;
  status.group = info.st_gid;
  status.mode = info.st_mode & 07777U;
  status.links = info.st_nlink;
  status.allocated_bytes = static_cast<std::uint64_t>(info.st_blocks) * 512;
  return status;
}

struct stat stat_descriptor(const Descriptor& descriptor, const std::string& path) {
  struct stat info {};
  if (::fstat(descriptor.get(), &info) != 0) throw_system_error("check the file's status", path, errno);
  return info;
}

std::unique_ptr<File> make_posix_file(Descriptor descriptor, std::string path, Access access,
                                      std::shared_ptr<DirectWriter> direct_writer) {
  return std::make_unique<PosixFile>(std::move(descriptor), std::move(path), access, std::move(direct_writer));
}

}  // namespace kedge::fs

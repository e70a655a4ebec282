#include "fs/posix_file.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.hpp"
#include "checksum/copy_with_checksum.hpp"
#include "checksum/crc32c.hpp"
#include "fs/guarded_range.hpp"
#include "fs/linux.hpp"
#include "fs/system_error.hpp"
#include "fs/transfer.hpp"

namespace kedge::fs {
namespace {

constexpr std::size_t kStreamBytes = std::size_t{1} << 20U;       // shorter reads may find the bytes in a cache
constexpr std::size_t kChunkBytes = std::size_t{2} << 20U;        // mapped at once; a huge page
constexpr std::uint64_t kAroundBytes = std::uint64_t{64} << 10U;  // that Linux maps around a faulting page on reads

class PosixMapping final : public Mapping {
 public:
  PosixMapping(std::byte* data, std::size_t size_bytes, Access access, std::string path)
      : data_(data),
        size_bytes_(size_bytes),
        access_(access),
        path_(std::move(path)),
        entered_((size_bytes + kChunkBytes - 1) / kChunkBytes) {
    guard_.emplace(data, size_bytes, access);
  }
  ~PosixMapping() override {
    guard_.reset();
    if (size_bytes_ != 0) ::munmap(data_, size_bytes_);
  }

  std::span<std::byte> memory() noexcept override {
    if (access_ != Access::read_write) return {};
    return {data_, size_bytes_};
  }
  std::uint32_t write_with_crc(std::uint64_t offset, std::span<const std::byte> bytes, std::uint32_t crc) override {
    if (access_ != Access::read_write) throw_system_error("write through a read-only mapping", path_, EACCES);
    require_within(path_, offset, bytes.size(), size_bytes_);
    enter(offset, bytes.size());
    crc = copy_with_checksum({data_ + offset, bytes.size()}, bytes, crc);
    require_written();
    return crc;
  }
  std::uint32_t write_xor(std::uint64_t offset, std::span<const std::span<const std::byte>> from,
                          std::uint32_t crc) override {
    if (access_ != Access::read_write) throw_system_error("write through a read-only mapping", path_, EACCES);
    const std::size_t size = from.front().size();
    require_within(path_, offset, size, size_bytes_);
    enter(offset, size);
    crc = xor_with_checksum({data_ + offset, size}, from, crc);
    require_written();
    return crc;
  }
  std::uint32_t read_with_crc(std::uint64_t offset, std::span<std::byte> bytes, std::uint32_t crc) override {
    require_within(path_, offset, bytes.size(), size_bytes_);
    for_each_piece(bytes.size(), kChunkBytes, [&](std::uint64_t at, std::uint64_t length) {
      const std::span<const std::byte> from = touched(offset + at, length);
      const auto to = bytes.subspan(at, length);
      crc =
          bytes.size() < kStreamBytes ? copy_in_caches_with_checksum(to, from, crc) : copy_with_checksum(to, from, crc);
    });
    require_read();
    return crc;
  }
  void read(std::uint64_t offset, std::span<std::byte> bytes) override {
    require_within(path_, offset, bytes.size(), size_bytes_);
    for_each_piece(bytes.size(), kChunkBytes, [&](std::uint64_t at, std::uint64_t length) {
      std::memcpy(bytes.data() + at, touched(offset + at, length).data(), length);
    });
    require_read();
  }
  std::uint32_t checksum(std::uint64_t offset, std::uint64_t length, std::uint32_t crc) override {
    require_within(path_, offset, length, size_bytes_);
    for_each_piece(length, kChunkBytes, [&](std::uint64_t at, std::uint64_t size) {
      crc = crc32c_from_memory(touched(offset + at, size), crc);
    });
    require_read();
    return crc;
  }
  std::span<const std::byte> bytes() const noexcept override { return {data_, size_bytes_}; }
  bool is_intact() const noexcept override { return guard_->is_intact(); }
  bool prefault() noexcept override {
    if (access_ != Access::read_write || ::madvise(data_, size_bytes_, kPopulateWrite) != 0) return false;
    for (auto& chunk : entered_) chunk.store(true, std::memory_order_relaxed);
    return true;
  }

 private:
  [[nodiscard]] std::span<const std::byte> touched(std::uint64_t offset, std::uint64_t length) const noexcept;
  void enter(std::uint64_t offset, std::uint64_t length) noexcept;
  void require_read() const { require_intact(ErrorCode::corrupt, "read", "treat the file as lost"); }
  void require_written() const {
    require_intact(ErrorCode::io, "written", "abandon the checkpoint and create another");
  }
  void require_intact(ErrorCode code, std::string_view used, std::string_view remedy) const;

  std::byte* data_;
  std::size_t size_bytes_;
  Access access_;
  std::string path_;
  std::vector<std::atomic<bool>> entered_;  ///< chunks that enter() has mapped
  std::optional<GuardedRange> guard_;
};

void PosixMapping::require_intact(ErrorCode code, std::string_view used, std::string_view remedy) const {
  if (is_intact()) return;
  throw Error(Failure{code,
                      compose("the file was truncated by another process, or its memory failed, while it was being {}; "
                              "{}",
                              used, remedy),
                      -1, path_, 0});
}

/// Takes the page faults of a read before it: taken in a row they cost half of what they cost during a checksum, and
/// less than MADV_POPULATE_READ if the pages are in memory.
std::span<const std::byte> PosixMapping::touched(std::uint64_t offset, std::uint64_t length) const noexcept {
  for (std::uint64_t at = 0; at < length; at += kAroundBytes) {
    static_cast<void>(*static_cast<const volatile std::byte*>(data_ + offset + at));
  }
  return {data_ + offset, length};
}

/// Maps a chunk at once: single page faults of a new mapping cost three times the copy that causes them, a chunk a
/// quarter of that. Populates by reading: writable shared pages are then mapped writable, and for recycled pages it
/// costs less than MADV_POPULATE_WRITE. If the kernel refuses, pages fault one by one.
void PosixMapping::enter(std::uint64_t offset, std::uint64_t length) noexcept {
  if (length == 0) return;
  for (std::uint64_t chunk = offset / kChunkBytes; chunk <= (offset + length - 1) / kChunkBytes; ++chunk) {
    if (entered_[chunk].load(std::memory_order_relaxed)) continue;
    entered_[chunk].store(true, std::memory_order_relaxed);  // doing it in two threads is harmless
    const std::uint64_t begin = chunk * kChunkBytes;
    (void)::madvise(data_ + begin, std::min<std::uint64_t>(kChunkBytes, size_bytes_ - begin), kPopulateRead);
  }
}

}  // namespace

std::unique_ptr<Mapping> make_posix_mapping(std::byte* data, std::size_t size_bytes, Access access, std::string path) {
  return std::make_unique<PosixMapping>(data, size_bytes, access, std::move(path));
}

}  // namespace kedge::fs

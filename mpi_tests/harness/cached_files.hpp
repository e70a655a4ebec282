// A file system with a page cache in front of another one, for stores on disks that devices write past it: whatever the
// cache may do with a page it does as late as it can, or when a device writes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "fs/file_system.hpp"
#include "harness/forwarding_file_system.hpp"

namespace kedge::faults {

class CachedFile;

/// Of a node's files, by path; lives longer than a job.
class PageCache {
 public:
  static constexpr std::uint64_t kPageBytes = 4096;

  /// What a device writes to an open file: past the pages that are here.
  void write_past(int descriptor, std::uint64_t offset, std::span<const std::byte> bytes);
  /// How many pages of a file it has.
  std::size_t pages_of(const std::string& path);
  /// All of it, as when the machine loses power or another disk is mounted. No file may be open.
  void forget();
  /// Dirty pages that a device had written below: what it wrote would be lost when they are written.
  std::size_t overwritten = 0;
  /// Files that were read while the cache had pages from before a device wrote them.
  std::size_t stale_reads = 0;

 private:
  friend class CachedFile;
  friend class CachedFileSystem;
  struct Page {
    std::array<std::byte, kPageBytes> bytes{};
    bool is_dirty = false;
    bool is_stale = false;  ///< a device has written it since
  };
  using Pages = std::map<std::uint64_t, Page>;  ///< by number

  std::recursive_mutex mutex_;
  std::map<std::string, Pages> files_;
  std::map<int, CachedFile*> open_;
  int next_descriptor_ = 1'000'000;
};

class CachedFile final : public ForwardingFile {
 public:
  CachedFile(std::unique_ptr<fs::File> inner, std::shared_ptr<PageCache> cache)
      : ForwardingFile(std::move(inner)), cache_(std::move(cache)) {
    const std::lock_guard guard(cache_->mutex_);
    cache_->open_[descriptor_ = cache_->next_descriptor_++] = this;
  }
  ~CachedFile() override {
    const std::lock_guard guard(cache_->mutex_);
    cache_->open_.erase(descriptor_);
  }
  std::uint32_t write_with_crc(std::uint64_t offset, std::span<const std::byte> bytes, std::uint32_t crc) override;
  std::uint32_t read_with_crc(std::uint64_t offset, std::span<std::byte> bytes, std::uint32_t crc) override;
  std::uint32_t checksum(std::uint64_t offset, std::uint64_t length, std::uint32_t crc) override;
  void truncate(std::uint64_t size_bytes) override;
  void sync() override;
  int direct_descriptor() override { return descriptor_; }
  void drop_cached_pages(std::uint64_t offset, std::uint64_t length) override;

 private:
  friend class PageCache;
  PageCache::Pages& pages() { return cache_->files_[path()]; }
  PageCache::Page& page(std::uint64_t number);
  void write_back(std::uint64_t number, PageCache::Page& page);
  void write_below(std::uint64_t offset, std::span<const std::byte> bytes) {
    ForwardingFile::write_with_crc(offset, bytes, 0);
  }

  std::shared_ptr<PageCache> cache_;
  int descriptor_ = -1;
};

/// Containers go through the cache, all else past it.
class CachedFileSystem final : public ForwardingFileSystem {
 public:
  CachedFileSystem(std::shared_ptr<fs::FileSystem> inner, std::shared_ptr<PageCache> cache)
      : ForwardingFileSystem(std::move(inner)), cache_(std::move(cache)) {}
  [[nodiscard]] std::unique_ptr<fs::File> open(const std::string& path, fs::Access access) override {
    return wrapped(inner().open(path, access));
  }
  [[nodiscard]] std::unique_ptr<fs::File> create(const std::string& path, std::uint32_t mode) override {
    return wrapped(inner().create(path, mode));
  }
  void remove(const std::string& path) override {
    inner().remove(path);
    const std::lock_guard guard(cache_->mutex_);
    cache_->files_.erase(path);
  }

 private:
  [[nodiscard]] std::unique_ptr<fs::File> wrapped(std::unique_ptr<fs::File> file) {
    if (!file || !file->path().starts_with("/nodes") || !file->path().ends_with(".h5")) return file;
    return std::make_unique<CachedFile>(std::move(file), cache_);
  }

  std::shared_ptr<PageCache> cache_;
};

}  // namespace kedge::faults

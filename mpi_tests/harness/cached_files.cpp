#include "harness/cached_files.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "checksum/crc32c.hpp"

namespace kedge::faults {
namespace {

constexpr std::uint64_t kPage = PageCache::kPageBytes;

/// visit(number of the page, where in it, where in the bytes, how many)
template <class Visit>
void for_each_page(std::uint64_t offset, std::uint64_t length, Visit&& visit) {
  for (std::uint64_t at = 0; at < length;) {
    const std::uint64_t within = (offset + at) % kPage;
    const std::uint64_t size = std::min(kPage - within, length - at);
    visit((offset + at) / kPage, within, at, size);
    at += size;
  }
}

}  // namespace

void PageCache::write_past(int descriptor, std::uint64_t offset, std::span<const std::byte> bytes) {
  const std::lock_guard guard(mutex_);
  const auto found = open_.find(descriptor);
  if (found == open_.end()) throw std::logic_error("a device writes a file that was closed");
  CachedFile& file = *found->second;
  file.write_below(offset, bytes);
  for (auto& [number, page] : file.pages()) {
    if (number < offset / kPage || number >= (offset + bytes.size()) / kPage) continue;
    if (page.is_dirty) ++overwritten;
    page.is_stale = true;
  }
  // Read ahead for a neighbour while the device writes: bytes from before the write.
  Page& ahead = file.pages()[offset / kPage];
  if (!ahead.is_dirty) ahead.bytes.fill(std::byte{0xdd});
  ahead.is_stale = true;
}

std::size_t PageCache::pages_of(const std::string& path) {
  const std::lock_guard guard(mutex_);
  return files_[path].size();
}

void PageCache::forget() {
  const std::lock_guard guard(mutex_);
  if (!open_.empty()) throw std::logic_error("a file is open whose pages are to be forgotten");
  files_.clear();
}

PageCache::Page& CachedFile::page(std::uint64_t number) {
  const auto [found, is_new] = pages().try_emplace(number);
  const std::uint64_t size_bytes = status().size_bytes;
  if (is_new && number * kPage < size_bytes) {
    const auto bytes = std::span(found->second.bytes).first(std::min(kPage, size_bytes - number * kPage));
    (void)ForwardingFile::read_with_crc(number * kPage, bytes, 0);
  }
  return found->second;
}

std::uint32_t CachedFile::write_with_crc(std::uint64_t offset, std::span<const std::byte> bytes, std::uint32_t crc) {
  const std::lock_guard guard(cache_->mutex_);
  if (offset + bytes.size() > status().size_bytes) throw std::logic_error("the store writes beyond what it reserved");
  for_each_page(offset, bytes.size(), [&](std::uint64_t number, std::uint64_t within, std::uint64_t at, auto size) {
    PageCache::Page& one = page(number);
    std::memcpy(one.bytes.data() + within, bytes.data() + at, size);
    one.is_dirty = true;
  });
  return crc32c(bytes, crc);
}

std::uint32_t CachedFile::read_with_crc(std::uint64_t offset, std::span<std::byte> bytes, std::uint32_t crc) {
  const std::lock_guard guard(cache_->mutex_);
  (void)ForwardingFile::read_with_crc(offset, bytes, 0);  // its faults and its end
  for_each_page(offset, bytes.size(), [&](std::uint64_t number, std::uint64_t within, std::uint64_t at, auto size) {
    const auto found = pages().find(number);
    if (found == pages().end()) return;
    if (found->second.is_stale) ++cache_->stale_reads;
    std::memcpy(bytes.data() + at, found->second.bytes.data() + within, size);
  });
  return crc32c(bytes, crc);
}

std::uint32_t CachedFile::checksum(std::uint64_t offset, std::uint64_t length, std::uint32_t crc) {
  std::vector<std::byte> bytes(length);
  (void)read_with_crc(offset, bytes, 0);
  return crc32c(bytes, crc);
}

void CachedFile::truncate(std::uint64_t size_bytes) {
  const std::lock_guard guard(cache_->mutex_);
  sync();
  ForwardingFile::truncate(size_bytes);
  pages().clear();
}

void CachedFile::sync() {
  const std::lock_guard guard(cache_->mutex_);
  for (auto& [number, one] : pages()) write_back(number, one);
  ForwardingFile::sync();
}

void CachedFile::drop_cached_pages(std::uint64_t offset, std::uint64_t length) {
  const std::lock_guard guard(cache_->mutex_);
  const auto end = pages().lower_bound((offset + length) / kPage);
  for (auto one = pages().lower_bound(offset / kPage); one != end; one = pages().erase(one)) {
    write_back(one->first, one->second);
  }
}

void CachedFile::write_back(std::uint64_t number, PageCache::Page& one) {
  const std::uint64_t size_bytes = status().size_bytes;
  if (!one.is_dirty || number * kPage >= size_bytes) return;
  write_below(number * kPage, std::span(one.bytes).first(std::min(kPage, size_bytes - number * kPage)));
  one.is_dirty = false;
}

}  // namespace kedge::faults

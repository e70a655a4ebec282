#include "fs/huge_pages.hpp"

#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <exception>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>

#include "base/text.hpp"
#include "fs/linux.hpp"

namespace kedge::fs {
namespace {

constexpr std::uint64_t kHugePageBytes = std::uint64_t{2} << 20U;
constexpr std::uint64_t kStepBytesMax = 8 * kHugePageBytes;

bool has_huge_page_advice(int descriptor) noexcept {
  struct stat info {};
  if (::fstat(descriptor, &info) != 0) return false;
  try {
    std::ifstream file("/proc/self/mountinfo");
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    return needs_huge_page_advice(text, major(info.st_dev), minor(info.st_dev));
  } catch (const std::exception&) {
    return false;  // out of memory: use small pages
  }
}

double seconds(clockid_t clock) noexcept {
  timespec now{};
  if (::clock_gettime(clock, &now) != 0) return 0;
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// Allocates a small page in each extent and collapses it into a huge page: most file systems in memory allocate only
/// small pages on access, even if advised. Works only on storage that this call itself allocated, since collapsing
/// copies existing pages. Returns where it stopped: no space, refused, or too slow.
std::uint64_t collapse(int descriptor, std::byte* data, std::uint64_t first, std::uint64_t last) noexcept {
  const double busy_s = seconds(CLOCK_THREAD_CPUTIME_ID);
  const double begun_s = seconds(CLOCK_MONOTONIC);
  std::uint64_t step_bytes = kHugePageBytes;  // to learn the cost early; each call disturbs all processors
  for (std::uint64_t at = first; at < last;) {
    const std::uint64_t length = std::min(last - at, step_bytes);
    for (std::uint64_t end = at + kHugePageBytes; end <= at + length; end += kHugePageBytes) {
      constexpr std::byte kZero{};
      // Allocates by pwrite, because a store that is full would raise a signal through the mapping; at the last byte,
      // so that the file grows with its storage and a crash leaves few holes.
      if (::pwrite(descriptor, &kZero, 1, static_cast<off_t>(end - 1)) != 1) return at;
    }
    const auto refused = [&] { return ::madvise(data + (at - first), length, kCollapse) != 0; };
    if (refused() && (errno != EAGAIN || refused())) return at;
    at += length;
    const bool pays = are_huge_pages_cheaper(at - first, seconds(CLOCK_THREAD_CPUTIME_ID) - busy_s,
                                             seconds(CLOCK_MONOTONIC) - begun_s);
    if (!pays) return at;
    step_bytes = std::min(2 * step_bytes, kStepBytesMax);
  }
  return last;
}

}  // namespace

// Format: number, parent, major:minor, root, mount point, options, ..., "-", type, source, filesystem options.
bool needs_huge_page_advice(std::string_view mountinfo, unsigned major, unsigned minor) {
  const std::string device = compose(" {}:{} ", major, minor);
  while (!mountinfo.empty()) {
    const auto line = mountinfo.substr(0, mountinfo.find('\n'));
    mountinfo.remove_prefix(std::min(mountinfo.size(), line.size() + 1));
    const auto filesystem = line.find(" - tmpfs ");
    if (filesystem == std::string_view::npos || line.substr(0, filesystem).find(device) == std::string_view::npos) {
      continue;
    }
    return compose("{},", line.substr(line.find_last_of(' ') + 1)).find("huge=advise,") != std::string::npos;
  }
  return false;
}

bool are_huge_pages_cheaper(std::uint64_t taken_bytes, double busy_s, double passed_s) noexcept {
  constexpr double kOddStepSeconds = 0.001;                    // tolerates an interruption
  constexpr double kWorthSecondsPerByte = 0.15 / (1U << 30U);  // two fifths of the cost of small pages
  const double worth_s = kOddStepSeconds + kWorthSecondsPerByte * static_cast<double>(taken_bytes);
  return busy_s <= worth_s && passed_s <= 8 * worth_s;  // other processes may use the core most of the time
}

void* map_aligned(int descriptor, int protection, std::uint64_t begin, std::size_t size_bytes) noexcept {
  const auto map = [&](void* where, int flags) {
    return ::mmap(where, size_bytes, protection, MAP_SHARED | flags, descriptor, static_cast<off_t>(begin));
  };
  if (size_bytes < kHugePageBytes) return map(nullptr, 0);
  const std::size_t room_bytes = size_bytes + kHugePageBytes;
  void* const room = ::mmap(nullptr, room_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) return room;
  void* data = room;
  std::size_t left_bytes = room_bytes;
  std::align(kHugePageBytes, size_bytes, data, left_bytes);
  void* const mapped = map(data, MAP_FIXED);
  const int error = errno;
  if (mapped == MAP_FAILED) {
    ::munmap(room, room_bytes);
    errno = error;
    return mapped;
  }
  const std::size_t whole_pages = (size_bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
  if (left_bytes != room_bytes) ::munmap(room, room_bytes - left_bytes);
  if (left_bytes != whole_pages) ::munmap(static_cast<std::byte*>(data) + whole_pages, left_bytes - whole_pages);
  return mapped;
}

std::uint64_t allocate_huge_pages(int descriptor, std::uint64_t begin, std::uint64_t end) noexcept {
  const std::uint64_t first = (begin + kHugePageBytes - 1) / kHugePageBytes * kHugePageBytes;
  const std::uint64_t last = end / kHugePageBytes * kHugePageBytes;
  if (last <= first) return begin;
  void* data = map_aligned(descriptor, PROT_READ | PROT_WRITE, first, last - first);
  if (data == MAP_FAILED) return begin;
  // If space runs out, populating ends early and raises no signal.
  if (has_huge_page_advice(descriptor) && ::ftruncate(descriptor, static_cast<off_t>(end)) == 0 &&
      ::madvise(data, last - first, MADV_HUGEPAGE) == 0) {
    (void)::madvise(data, last - first, kPopulateWrite);
  }
  const std::uint64_t collapsed = collapse(descriptor, static_cast<std::byte*>(data), first, last);
  ::munmap(data, last - first);
  return collapsed == first ? begin : collapsed;
}

}  // namespace kedge::fs

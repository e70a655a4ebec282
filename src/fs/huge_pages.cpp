#include "fs/huge_pages.hpp"

#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <exception>
#include <fstream>
#include <iterator>
#include <string>

#include "base/text.hpp"

namespace kedge::fs {
namespace {

constexpr std::uint64_t kHugePageBytes = std::uint64_t{2} << 20U;

#ifdef MADV_POPULATE_WRITE
constexpr int kPopulateWrite = MADV_POPULATE_WRITE;
#else
constexpr int kPopulateWrite = 23;  // the number in Linux since 5.14; older kernels refuse it
#endif

bool advised(int descriptor) {
  struct stat info {};
  if (::fstat(descriptor, &info) != 0) return false;
  std::ifstream file("/proc/self/mountinfo");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  return gives_huge_pages_on_advice(text, major(info.st_dev), minor(info.st_dev));
}

}  // namespace

// A line: number, parent, major:minor, root, mount point, options, ..., "-", type, source, options of the filesystem.
bool gives_huge_pages_on_advice(std::string_view mountinfo, unsigned major, unsigned minor) {
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

// fallocate has no mapping that could ask, so the pages are touched first, through one that does. Where there is no
// room, populating ends early instead of raising a signal, and fallocate says why.
void take_huge_pages(int descriptor, std::uint64_t begin, std::uint64_t end) noexcept {
  begin = begin / kHugePageBytes * kHugePageBytes;
  if (end - begin < kHugePageBytes) return;
  try {
    if (!advised(descriptor)) return;
  } catch (const std::exception&) {
    return;  // out of memory: small pages do as well
  }
  if (::ftruncate(descriptor, static_cast<off_t>(end)) != 0) return;
  void* data = ::mmap(nullptr, end - begin, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, static_cast<off_t>(begin));
  if (data == MAP_FAILED) return;
  if (::madvise(data, end - begin, MADV_HUGEPAGE) == 0) (void)::madvise(data, end - begin, kPopulateWrite);
  ::munmap(data, end - begin);
}

}  // namespace kedge::fs

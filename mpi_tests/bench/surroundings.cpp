#include "surroundings.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string_view>

namespace kedge_bench {
namespace {

/// "always [never] deny" is never.
std::string huge_page_setting() {
  std::ifstream file("/sys/kernel/mm/transparent_hugepage/shmem_enabled");
  std::string line;
  std::getline(file, line);
  const auto begin = line.find('[');
  const auto end = line.find(']');
  return begin == std::string::npos || end == std::string::npos ? "unknown" : line.substr(begin + 1, end - begin - 1);
}

struct Known {
  std::uint32_t number;
  const char* name;
  bool memory;
};

/// As statfs(2) numbers them.
constexpr std::array<Known, 10> kKnown{{{0xef53, "ext4", false},
                                        {0x58465342, "xfs", false},
                                        {0x9123683e, "btrfs", false},
                                        {0x2fc12fc1, "zfs", false},
                                        {0x794c7630, "overlay", false},
                                        {0x6969, "nfs", false},
                                        {0x0bd00bd0, "lustre", false},
                                        {0x47504653, "gpfs", false},
                                        {0x01021994, "tmpfs", true},
                                        {0x858458f6, "ramfs", true}}};

/// A line is "Key:   123 kB". 0 if there is none such.
std::uint64_t bytes_of(const char* path, std::string_view wanted) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string key;
    std::uint64_t kib = 0;
    if (words >> key >> kib && key == wanted) return kib * 1024;
  }
  return 0;
}

}  // namespace

Filesystem filesystem_of(const std::string& directory) {
  struct statfs found {};
  if (::statfs(directory.c_str(), &found) != 0)
    throw std::runtime_error("cannot look at the filesystem of " + directory);
  const auto number = static_cast<std::uint32_t>(found.f_type);
  const auto* const known = std::ranges::find(kKnown, number, &Known::number);
  if (known == kKnown.end()) return {"filesystem " + std::to_string(number), false};
  return {known->name, known->memory};
}

LocationOptions look_around() {
  LocationOptions found;
  utsname name{};
  if (::uname(&name) == 0) found.kernel = std::string(name.sysname) + " " + name.release;
  found.huge_pages = huge_page_setting();
  cpu_set_t cores;
  if (::sched_getaffinity(0, sizeof cores, &cores) == 0) found.cores = static_cast<unsigned>(CPU_COUNT(&cores));
  (void)::getloadavg(&found.load, 1);
  return found;
}

SharedMemory shared_memory() {
  return {bytes_of("/proc/meminfo", "Shmem:"), bytes_of("/proc/meminfo", "ShmemHugePages:")};
}

void drop_from_page_cache(const std::string& file) {
  const int descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  const int failed = descriptor < 0 ? errno : ::posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED);
  if (descriptor >= 0) ::close(descriptor);
  if (failed != 0) throw std::runtime_error("cannot evict " + file + ": " + std::strerror(failed));
}

std::uint64_t private_bytes() { return bytes_of("/proc/self/status", "RssAnon:"); }

std::uint64_t resident_bytes() { return bytes_of("/proc/self/status", "VmRSS:"); }

}  // namespace kedge_bench

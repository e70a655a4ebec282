#include "surroundings.hpp"

#include <sched.h>
#include <stdlib.h>
#include <sys/utsname.h>

#include <fstream>
#include <sstream>

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

}  // namespace

Surroundings look_around() {
  Surroundings found;
  utsname name{};
  if (::uname(&name) == 0) found.kernel = std::string(name.sysname) + " " + name.release;
  found.huge_pages = huge_page_setting();
  cpu_set_t cores;
  if (::sched_getaffinity(0, sizeof cores, &cores) == 0) found.cores = static_cast<unsigned>(CPU_COUNT(&cores));
  (void)::getloadavg(&found.load, 1);
  return found;
}

std::uint64_t private_bytes() {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string key;
    std::uint64_t kib = 0;
    if (words >> key >> kib && key == "RssAnon:") return kib * 1024;
  }
  return 0;
}

}  // namespace kedge_bench

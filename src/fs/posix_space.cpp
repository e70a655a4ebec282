#include "fs/posix_space.hpp"

#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <iterator>
#include <limits>

#include "base/hash.hpp"
#include "base/text.hpp"
#include "fs/linux.hpp"
#include "fs/system_error.hpp"
#include "fs/transfer.hpp"

namespace kedge::fs {
namespace {

constexpr std::uint64_t kUnlimited = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint64_t kNoLimit = std::uint64_t{1} << 62U;  // version 1 reports LONG_MAX in whole pages

/// Files and memory.stat lines in which one version of cgroups reports memory.
struct CgroupVersion {
  std::array<std::string_view, 2> limits;  ///< above the second one, processes are slowed down, not killed
  std::string_view used;
  std::string_view limit_from_above;  ///< the least limit of all ancestors, even invisible ones
  std::array<std::string_view, 2> file_pages;
  std::array<std::string_view, 2> unwritten;  ///< of page cache that is not yet written back
};
constexpr CgroupVersion kVersion1{{"memory.limit_in_bytes", {}},
                                  "memory.usage_in_bytes",
                                  "hierarchical_memory_limit",
                                  {"total_inactive_file", "total_active_file"},
                                  {"total_dirty", "total_writeback"}};
constexpr CgroupVersion kVersion2{{"memory.max", "memory.high"},
                                  "memory.current",
                                  {},
                                  {"inactive_file", "active_file"},
                                  {"file_dirty", "file_writeback"}};

/// The kernel charges about half a page of overhead (page tree, mappings) for 128 pages of a file.
constexpr std::uint64_t kPagesPerReservedPage = 128;
constexpr std::uint64_t kMachineId = 1;

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::optional<std::uint64_t> leading_number(std::string_view text) {
  const auto begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return std::nullopt;
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data() + begin, text.data() + text.size(), value);
  if (error != std::errc{}) return std::nullopt;  // "max" or no such file
  return value;
}

/// Returns the number after `key` at the start of a line.
std::optional<std::uint64_t> number_of(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    const auto line = text.substr(0, text.find('\n'));
    if (line.starts_with(key) && line.size() > key.size() && (line[key.size()] == ' ' || line[key.size()] == ':')) {
      return leading_number(line.substr(key.size() + 1));
    }
    text.remove_prefix(std::min(text.size(), line.size() + 1));
  }
  return std::nullopt;
}

std::uint64_t subtract_or_zero(std::uint64_t a, std::uint64_t b) noexcept { return a > b ? a - b : 0; }

std::uint64_t sum_of(std::string_view text, const std::array<std::string_view, 2>& keys) {
  return number_of(text, keys[0]).value_or(0) + number_of(text, keys[1]).value_or(0);
}

struct Limit {
  std::uint64_t bytes = kUnlimited;
  std::string name;
};

Limit limit_of(const std::string& directory, const CgroupVersion& version, std::string_view stat) {
  Limit tightest;
  const auto take = [&](std::optional<std::uint64_t> bytes, std::string_view file) {
    if (bytes && *bytes < tightest.bytes) tightest = {*bytes, join(directory, file)};
  };
  for (const std::string_view file : version.limits) {
    if (!file.empty()) take(leading_number(text_of(join(directory, file))), file);
  }
  if (!version.limit_from_above.empty()) take(number_of(stat, version.limit_from_above), "memory.stat");
  return tightest;
}

/// Id of this directory: two processes with different namespaces may see different directories under one path.
std::uint64_t id_of(const std::string& directory) {
  struct stat info {};
  if (::stat(directory.c_str(), &info) != 0) return fnv1a(directory);
  return fnv1a(compose("{}:{}", info.st_dev, info.st_ino));
}

std::optional<SpaceLimit> read_space_limit(const std::string& directory, const CgroupVersion& version) {
  // Read in this order, pages dropped in between count as used rather than as free twice.
  const std::string stat = text_of(join(directory, "memory.stat"));
  const auto used = leading_number(text_of(join(directory, version.used)));
  const Limit limit = limit_of(directory, version, stat);
  if (!used || limit.bytes >= kNoLimit) return std::nullopt;
  const std::uint64_t droppable = subtract_or_zero(sum_of(stat, version.file_pages), sum_of(stat, version.unwritten));
  const std::uint64_t left = subtract_or_zero(limit.bytes, subtract_or_zero(*used, droppable));
  return SpaceLimit{left - left / kPagesPerReservedPage,
                    compose("memory cgroup ({}: {})", limit.name, human_bytes(limit.bytes)), id_of(directory)};
}

/// Adds the limits from `group` up to the root. Skips missing directories: in a container, the membership may be
/// written as the host sees it, while only the container's group is mounted.
void add_limits_from_group_to_root(std::string group, const std::string& mount, const CgroupVersion& version,
                                   std::vector<SpaceLimit>& space_limits) {
  while (true) {
    if (auto room = read_space_limit(mount + group, version)) space_limits.push_back(*std::move(room));
    if (group.empty() || group == "/") return;
    group.resize(group.find_last_of('/') == std::string::npos ? 0 : group.find_last_of('/'));
  }
}

bool lists_memory(std::string_view controllers) {
  return (compose(",{},", controllers)).find(",memory,") != std::string::npos;
}

}  // namespace

std::vector<SpaceLimit> cgroup_limits(std::string_view membership, const std::string& mount) {
  std::vector<SpaceLimit> space_limits;
  while (!membership.empty()) {  // format: "number:controllers:/group"
    const auto line = membership.substr(0, membership.find('\n'));
    membership.remove_prefix(std::min(membership.size(), line.size() + 1));
    const auto first = line.find(':');
    const auto second = line.find(':', first == std::string_view::npos ? first : first + 1);
    if (second == std::string_view::npos) continue;
    const auto controllers = line.substr(first + 1, second - first - 1);
    const std::string group(line.substr(second + 1));
    if (lists_memory(controllers)) add_limits_from_group_to_root(group, join(mount, "memory"), kVersion1, space_limits);
    if (controllers.empty()) {
      add_limits_from_group_to_root(group, mount, kVersion2, space_limits);
      add_limits_from_group_to_root(group, join(mount, "unified"), kVersion2, space_limits);
    }
  }
  return space_limits;
}

std::optional<SpaceLimit> machine_limit(std::string_view meminfo) {
  const auto available_kib = number_of(meminfo, "MemAvailable");
  if (!available_kib) return std::nullopt;
  return SpaceLimit{*available_kib * 1024, "the machine's available memory (MemAvailable)", kMachineId};
}

Space posix_space(const std::string& path) {
  struct statvfs volume {};
  if (retry_interrupted([&] { return ::statvfs(path.c_str(), &volume); }) != 0) {
    throw_system_error("query the free space", path, errno);
  }
  struct statfs kind {};
  if (retry_interrupted([&] { return ::statfs(path.c_str(), &kind); }) != 0) {
    throw_system_error("query the type of the filesystem", path, errno);
  }
  Space space;
  space.memory_backed = kind.f_type == kTmpfsMagic || kind.f_type == kRamfsMagic;
  // ramfs, and tmpfs with size=0, report 0 blocks to mean no limit; filesystems in user space report 0 for unknown.
  const bool unlimited = volume.f_blocks == 0;
  const std::uint64_t free_bytes =
      unlimited ? kUnlimited : static_cast<std::uint64_t>(volume.f_bavail) * volume.f_frsize;
  space.free_inodes = volume.f_files == 0 ? kUnlimited : static_cast<std::uint64_t>(volume.f_favail);
  struct stat info {};
  const bool is_known = ::stat(path.c_str(), &info) == 0;
  space.space_limits.push_back({free_bytes, "filesystem", fnv1a(is_known ? compose("{}", info.st_dev) : path)});
  space.total_bytes = static_cast<std::uint64_t>(volume.f_blocks) * volume.f_frsize;
  if (space.memory_backed) {
    const std::string meminfo = text_of("/proc/meminfo");
    space.memory_bytes = number_of(meminfo, "MemTotal").value_or(0) * 1024;
    for (SpaceLimit& room : cgroup_limits(text_of("/proc/self/cgroup"), "/sys/fs/cgroup"))
      space.space_limits.push_back(std::move(room));
    if (auto room = machine_limit(meminfo)) space.space_limits.push_back(*std::move(room));
  }
  const SpaceLimit& tightest = *std::ranges::min_element(space.space_limits, {}, &SpaceLimit::free_bytes);
  space.free_bytes = tightest.free_bytes;
  space.limit = tightest.limit;
  return space;
}

}  // namespace kedge::fs

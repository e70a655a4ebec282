#include "fs/posix_space.hpp"

#include <sys/statvfs.h>
#include <sys/vfs.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <limits>

#include "base/text.hpp"
#include "fs/system_error.hpp"
#include "fs/transfer.hpp"

namespace kedge::fs {
namespace {

constexpr std::uint64_t kUnlimited = std::numeric_limits<std::uint64_t>::max();
constexpr long kTmpfsMagic = 0x01021994;
constexpr long kRamfsMagic = 0x858458f6;

/// The files that one version of cgroups keeps its memory numbers in.
struct Version {
  std::string_view limit;
  std::string_view used;
  std::string_view droppable;  // a line of memory.stat
};
constexpr Version kVersion1{"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"};
constexpr Version kVersion2{"memory.max", "memory.current", "inactive_file"};

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::optional<std::uint64_t> leading_number(std::string_view text) {
  const auto begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return std::nullopt;
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data() + begin, text.data() + text.size(), value);
  if (error != std::errc{}) return std::nullopt;  // "max", or no such file
  return value;
}

/// The number after `key` at the start of a line.
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

std::uint64_t minus(std::uint64_t a, std::uint64_t b) noexcept { return a > b ? a - b : 0; }

std::optional<Room> room_of_one(const std::string& directory, const Version& version) {
  const auto limit = leading_number(text_of(join(directory, version.limit)));
  const auto used = leading_number(text_of(join(directory, version.used)));
  if (!limit || !used) return std::nullopt;
  const auto droppable = number_of(text_of(join(directory, "memory.stat")), version.droppable).value_or(0);
  return Room{minus(*limit, minus(*used, droppable)), compose("memory cgroup ({})", join(directory, version.limit))};
}

void take_tighter(std::optional<Room>& best, std::optional<Room> other) {
  if (other && (!best || other->free_bytes < best->free_bytes)) best = std::move(other);
}

/// From `group` up to the root. Directories that are not there are skipped: in a container the membership may be
/// written as the host sees it, while only the container's own group is mounted.
std::optional<Room> room_up_from(std::string group, const std::string& mount, const Version& version) {
  std::optional<Room> best;
  while (true) {
    take_tighter(best, room_of_one(mount + group, version));
    if (group.empty() || group == "/") return best;
    group.resize(group.find_last_of('/') == std::string::npos ? 0 : group.find_last_of('/'));
  }
}

bool lists_memory(std::string_view controllers) {
  return (compose(",{},", controllers)).find(",memory,") != std::string::npos;
}

}  // namespace

std::optional<Room> cgroup_room(std::string_view membership, const std::string& mount) {
  std::optional<Room> best;
  while (!membership.empty()) {  // lines "number:controllers:/group"
    const auto line = membership.substr(0, membership.find('\n'));
    membership.remove_prefix(std::min(membership.size(), line.size() + 1));
    const auto first = line.find(':');
    const auto second = line.find(':', first == std::string_view::npos ? first : first + 1);
    if (second == std::string_view::npos) continue;
    const auto controllers = line.substr(first + 1, second - first - 1);
    const std::string group(line.substr(second + 1));
    if (lists_memory(controllers)) take_tighter(best, room_up_from(group, join(mount, "memory"), kVersion1));
    if (controllers.empty()) {
      take_tighter(best, room_up_from(group, mount, kVersion2));
      take_tighter(best, room_up_from(group, join(mount, "unified"), kVersion2));
    }
  }
  return best;
}

std::optional<Room> machine_room(std::string_view meminfo) {
  const auto available_kib = number_of(meminfo, "MemAvailable");
  if (!available_kib) return std::nullopt;
  return Room{*available_kib * 1024, "the machine's available memory (MemAvailable)"};
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
  // ramfs and a tmpfs mounted with size=0 say 0 blocks and mean no limit of their own.
  const bool unlimited = space.memory_backed && volume.f_blocks == 0;
  space.free_bytes = unlimited ? kUnlimited : static_cast<std::uint64_t>(volume.f_bavail) * volume.f_frsize;
  space.free_inodes = volume.f_files == 0 ? kUnlimited : static_cast<std::uint64_t>(volume.f_favail);
  space.limit = "filesystem";
  if (!space.memory_backed) return space;

  std::optional<Room> memory = cgroup_room(text_of("/proc/self/cgroup"), "/sys/fs/cgroup");
  take_tighter(memory, machine_room(text_of("/proc/meminfo")));
  if (memory && memory->free_bytes < space.free_bytes) {
    space.free_bytes = memory->free_bytes;
    space.limit = memory->limit;
  }
  return space;
}

}  // namespace kedge::fs

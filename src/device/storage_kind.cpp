#include "device/storage_kind.hpp"

#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#include <filesystem>
#include <system_error>

#include "base/text.hpp"

namespace kedge::device {
namespace {

// Of CUfileDriverStatusFlags.
constexpr unsigned kLustre = 1U << 0U;
constexpr unsigned kNfs = 1U << 2U;
constexpr unsigned kGpfs = 1U << 3U;
constexpr unsigned kNvme = 1U << 4U | 1U << 5U | 1U << 11U;  // local, over fabrics, with the kernel's P2PDMA
constexpr unsigned kScsi = 1U << 6U;
constexpr unsigned kBeeGfs = 1U << 9U;

unsigned kind_of_device(const std::string& directory) {
  if (directory.find("/nvme") != std::string::npos) return kNvme;
  const std::string name = std::filesystem::path(directory).filename();
  return name.starts_with("sd") ? kScsi : 0U;
}

/// Adds the devices that this one consists of (RAID, LVM), or the device itself.
void add_devices(const std::filesystem::path& directory, std::vector<std::string>& all, int depth) {
  std::error_code error;
  const auto real = std::filesystem::canonical(directory, error);
  if (error || depth > 8) return all.push_back("");
  if (std::filesystem::exists(real / "partition", error)) return add_devices(real.parent_path(), all, depth + 1);
  bool has_parts = false;
  for (const auto& part : std::filesystem::directory_iterator(real / "slaves", error)) {
    has_parts = true;
    add_devices(part.path(), all, depth + 1);
  }
  if (!has_parts) all.push_back(real.string());
}

}  // namespace

unsigned storage_kinds(long type, const std::vector<std::string>& devices) {
  switch (type) {
    case 0x0BD00BD0: return kLustre;
    case 0x6969: return kNfs;
    case 0x47504653: return kGpfs;
    case 0x19830326: return kBeeGfs;
    case 0xEF53:      // ext4
    case 0x58465342:  // XFS
      break;
    default: return 0;
  }
  unsigned common = devices.empty() ? 0U : ~0U;
  for (const std::string& device : devices) common &= kind_of_device(device);
  return common;
}

unsigned storage_kinds(int descriptor) {
  struct statfs filesystem {};
  struct stat file {};
  if (::fstatfs(descriptor, &filesystem) != 0 || ::fstat(descriptor, &file) != 0) return 0;
  std::vector<std::string> devices;
  add_devices(compose("/sys/dev/block/{}:{}", major(file.st_dev), minor(file.st_dev)), devices, 0);
  return storage_kinds(filesystem.f_type, devices);
}

}  // namespace kedge::device

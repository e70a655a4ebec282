// From a device's memory to a file on a disk, without a copy in host memory (GPUDirect Storage).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "device/checksum_selector.hpp"
#include "device/devices.hpp"
#include "fs/file_system.hpp"
#include "kedge/error.hpp"
#include "kedge/options.hpp"

namespace kedge::device {

/// Whether devices write a file by themselves: its registration. From any thread, but not while it is written.
class FileRegistration {
 public:
  /// The file's owner calls it before the file is closed, sealed or changes its size.
  void end() noexcept;

 private:
  friend class DirectWrites;
  std::mutex mutex_;
  std::shared_ptr<Devices> devices_;  // the file's owner may outlive everybody else who uses them
  std::unique_ptr<DirectFile> file_;
};

/// A file that devices may be made to write; there is none without `file`.
struct FileTarget {
  fs::File* file = nullptr;
  std::shared_ptr<FileRegistration> access;  ///< shared with its owner
};

/// From any thread; writes follow each other.
class DirectWrites {
 public:
  /// Smaller regions go through buffers, since the host computes their checksums.
  static constexpr std::uint64_t kBytesMin = std::uint64_t{4} << 20U;

  struct Settings {
    bool is_wanted = false;  ///< device.path = gds
    /// Gets one line if this way is used, or why it is not; and what ChecksumSelector logs.
    ChecksumSelector::LogLine log = {};
  };

  /// Memory of a device, where it goes, and by how many threads.
  struct Transfer {
    std::span<const std::byte> memory;
    Location location;
    FileTarget to;
    std::uint64_t offset = 0;
    std::uint64_t block_bytes = 0;
    unsigned threads = 1;
  };

  /// Copies a part of a transfer's memory to its place by way of the host.
  using ByHost = std::function<void(std::uint64_t begin, std::uint64_t length)>;

  DirectWrites(std::shared_ptr<Devices> devices, Settings settings);

  /// CRC32C of the blocks, computed by the device, when all is in the file; what shares a page with other data goes
  /// `by_host`. Nothing if this way does not serve: then all of it is to be written by another one. Throws io and
  /// no_space of the file, device_failed, and what `by_host` throws but invalid_argument.
  [[nodiscard]] std::optional<std::vector<std::uint32_t>> write(const Transfer& transfer, const ByHost& by_host);
  /// After a transfer by another way: whether the device computes what the host has computed is decided by that, once
  /// for each device. Throws device_failed, and corrupt if they differ.
  void compare(const Transfer& transfer, std::span<const std::uint32_t> of_host);
  /// Ends all registrations.
  void release();

 private:
  [[nodiscard]] bool is_candidate(const Transfer& transfer) const noexcept;
  [[nodiscard]] DirectFile* registered(const Transfer& transfer);
  [[nodiscard]] std::vector<std::uint32_t> write_all(DirectFile& file, Checksums& checksums, const Transfer& transfer,
                                                     const ByHost& by_host);
  void refuse(const Failure& why);
  void tell(LogLevel level, std::string_view line) const;

  std::shared_ptr<Devices> devices_;
  Settings settings_;
  std::mutex mutex_;
  ChecksumSelector checksums_;
  bool has_logged_ = false;
  std::vector<std::weak_ptr<FileRegistration>> registered_;
};

}  // namespace kedge::device

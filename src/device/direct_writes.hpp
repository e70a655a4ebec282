// Writes device memory to files on disk without a copy in host memory (GPUDirect Storage).
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

/// A file's registration with the devices. Thread-safe, but not while the file is written.
class FileRegistration {
 public:
  /// The file's owner must call it before it closes, seals or resizes the file.
  void end() noexcept;

 private:
  friend class DirectWrites;
  std::mutex mutex_;
  std::shared_ptr<Devices> devices_;  // shared, because the file's owner may outlive the other users
  std::unique_ptr<DirectFile> file_;
};

/// A file that devices may write to; none if `file` is null.
struct FileTarget {
  fs::File* file = nullptr;
  std::shared_ptr<FileRegistration> access;  ///< shared with the file's owner
};

/// Thread-safe; writes run one after the other.
class DirectWrites {
 public:
  /// Smaller regions go through buffers, because the host computes their checksums.
  static constexpr std::uint64_t kBytesMin = std::uint64_t{4} << 20U;

  struct Settings {
    bool is_wanted = false;  ///< device.path = gds
    /// Gets one line if this way is used, or why it is not; and what ChecksumSelector logs.
    ChecksumSelector::LogLine log = {};
  };

  /// Device memory, its target in the file, and the number of threads.
  struct Transfer {
    std::span<const std::byte> memory;
    MemoryLocation location;
    FileTarget target;
    std::uint64_t offset = 0;
    std::uint64_t block_bytes = 0;
    unsigned threads = 1;
  };

  /// Copies a part of a transfer through host memory.
  using CopyByHost = std::function<void(std::uint64_t begin, std::uint64_t length)>;

  DirectWrites(std::shared_ptr<Devices> devices, Settings settings);

  /// Writes the transfer and returns its blocks' CRC32C, computed by the device; `by_host` writes parts that share a
  /// page with other data. Returns nothing if direct writes are impossible: then the caller must write all of it in
  /// another way. Throws io and no_space of the file, device_failed, and what `by_host` throws, except
  /// invalid_argument.
  [[nodiscard]] std::optional<std::vector<std::uint32_t>> write(const Transfer& transfer, const CopyByHost& by_host);
  /// Call it after writing a transfer in another way. Once per device, compares the device's checksums with the host's
  /// and decides which to use. Throws device_failed; corrupt if they differ.
  void compare_checksums(const Transfer& transfer, std::span<const std::uint32_t> of_host);
  /// Ends all registrations.
  void release();

 private:
  [[nodiscard]] bool is_candidate(const Transfer& transfer) const noexcept;
  [[nodiscard]] DirectFile* register_file(const Transfer& transfer);
  [[nodiscard]] std::vector<std::uint32_t> write_all(DirectFile& file, DeviceChecksums& checksums,
                                                     const Transfer& transfer, const CopyByHost& by_host);
  void log_refusal(const Failure& why);
  void log_line(LogLevel level, std::string_view line) const;

  std::shared_ptr<Devices> devices_;
  Settings settings_;
  std::mutex mutex_;
  ChecksumSelector checksums_;
  bool has_logged_ = false;
  std::vector<std::weak_ptr<FileRegistration>> registrations_;
};

}  // namespace kedge::device

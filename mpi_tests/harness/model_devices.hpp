// Devices that are host memory with a device's rules: the host cannot touch it, and copies are done as late as allowed.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "device/devices.hpp"
#include "kedge/error.hpp"

namespace kedge::faults {

class ModelDevices final : public device::Devices, public std::enable_shared_from_this<ModelDevices> {
 public:
  /// Memory of a device, until it is destroyed; before the devices are.
  class Array {
   public:
    Array(ModelDevices& devices, int ordinal, std::size_t size_bytes);
    ~Array();
    Array(const Array&) = delete;
    Array& operator=(const Array&) = delete;
    /// For Region: whoever touches it dies.
    [[nodiscard]] void* address() const noexcept { return outside_; }
    /// What a kernel of the application sees.
    [[nodiscard]] std::span<std::byte> contents() const noexcept { return {inside_, size_bytes_}; }

   private:
    ModelDevices& devices_;
    std::size_t size_bytes_;
    std::byte* outside_ = nullptr;  ///< the same pages: entered without rights
    std::byte* inside_ = nullptr;   ///< and with
  };

  /// What a stream was given: done when somebody waits for it, or for the whole device.
  void give(const DeviceStream& stream, std::function<void()> kernel);

  /// What fails from the nth call of a kind on ("synchronize", "queue", "pinned", "register", "allocate", "copy",
  /// "copy_within", "wait", "checksums", "direct_file", "direct_write"; 1 is the first), for all time if it is the
  /// device that failed, else once.
  void fail(const std::string& what, std::uint64_t nth, ErrorCode code);

  /// Called with each call of a kind, before it; from any thread.
  std::function<void(const std::string& what)> on_call;

  /// Where what devices write to files goes; without it there is no way to files.
  std::function<void(int descriptor, std::uint64_t offset, std::span<const std::byte> bytes)> write_file;
  /// Files that are registered.
  [[nodiscard]] std::size_t direct_files() const;
  /// How much was written to files so far.
  [[nodiscard]] std::size_t written_directly() const;

  /// Of their own.
  [[nodiscard]] std::size_t pinned_bytes() const;
  /// Of others' memory.
  [[nodiscard]] std::size_t registered_bytes() const;
  /// How much was copied there so far.
  [[nodiscard]] std::size_t copied_directly() const;
  /// Of this device's memory, by Kedge.
  [[nodiscard]] std::size_t allocated_bytes() const;
  /// How much was copied within the device so far.
  [[nodiscard]] std::size_t copied_within() const;
  [[nodiscard]] std::size_t copies_in_progress() const;
  [[nodiscard]] std::size_t copies_in_progress_max() const;

  device::MemoryLocation location_of(const void* data) override;
  void synchronize(const device::MemoryLocation& location, const std::optional<DeviceStream>& stream) override;
  std::unique_ptr<device::CopyQueue> make_queue(const device::MemoryLocation& location) override;
  std::unique_ptr<device::PinnedMemory> allocate_pinned(const device::MemoryLocation& location,
                                                        std::size_t size_bytes) override;
  std::unique_ptr<device::DeviceMemory> allocate(const device::MemoryLocation& location,
                                                 std::size_t size_bytes) override;
  std::unique_ptr<device::Registration> register_memory(const device::MemoryLocation& location,
                                                        std::span<std::byte> memory) override;
  std::unique_ptr<device::DeviceChecksums> make_checksums(const device::MemoryLocation& location) override;
  std::unique_ptr<device::DirectFile> open_direct_file(const device::MemoryLocation& location, int descriptor) override;

  /// From now on devices compute checksums, which are wrong or take long if told so. Not at first: who is faster is for
  /// the moment to say, and most tests want the same way each time.
  void compute_checksums(std::uint32_t wrong_by = 0, std::chrono::milliseconds delay = {});
  /// Of how many pieces, until now.
  [[nodiscard]] std::size_t checksums_computed() const;

 private:
  class ModelQueue;
  class ModelChecksums;
  class Pinned;
  class Allocated;
  class Registered;
  class ModelFile;
  struct Allocation {
    int ordinal = 0;
    std::size_t size_bytes = 0;
    std::byte* inside = nullptr;
  };
  struct Planned {
    std::uint64_t left = 0;
    ErrorCode code = ErrorCode::device_failed;
  };

  void count(const std::string& what);
  [[nodiscard]] std::byte* inside_of(const device::MemoryLocation& location, const std::byte* outside,
                                     std::size_t size_bytes) const;
  /// Whether it is others'.
  bool check_pinned(const std::byte* data, std::size_t size_bytes) const;

  mutable std::mutex mutex_;
  std::map<const std::byte*, Allocation> allocations_;
  std::map<const std::byte*, std::size_t> pinned_;
  std::map<const std::byte*, std::size_t> registered_;
  std::size_t copied_directly_ = 0;
  bool computes_checksums_ = false;
  std::size_t direct_files_ = 0;
  std::size_t written_directly_ = 0;
  std::size_t checksums_computed_ = 0;
  std::uint32_t checksums_wrong_by_ = 0;
  std::chrono::milliseconds checksums_delay_{0};
  std::size_t allocated_bytes_ = 0;
  std::size_t copied_within_ = 0;
  std::map<void*, std::vector<std::function<void()>>> given_;
  std::map<std::string, Planned> planned_;
  std::optional<ErrorCode> lost_;
  std::size_t in_progress_ = 0;
  std::size_t in_progress_max_ = 0;
};

}  // namespace kedge::faults

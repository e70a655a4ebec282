// Devices in a build without CUDA: detects device memory and refuses it with a message, since copying it would crash.
#include <dlfcn.h>

#include "device/devices.hpp"
#include "device/loaded_driver.hpp"
#include "kedge/error.hpp"

namespace kedge::device {
namespace {

// The driver's interface, which never changes: cuPointerGetAttribute(void* value, int attribute, address).
using GetAttribute = int (*)(void* value, int attribute, unsigned long long address);  // NOLINT(google-runtime-int)
constexpr int kMemoryType = 2;    // CU_POINTER_ATTRIBUTE_MEMORY_TYPE
constexpr unsigned kHostMax = 1;  // CU_MEMORYTYPE_HOST

[[noreturn]] void refuse() {
  throw Error(ErrorCode::invalid_argument,
              "it is GPU memory, and Kedge was built without CUDA; copy it to host memory first, or rebuild Kedge with "
              "-DKEDGE_CUDA=ON");
}

class NoDevices final : public Devices {
 public:
  MemoryLocation location_of(const void* data) override {
    void* library = data == nullptr ? nullptr : loaded_.handle();
    if (library == nullptr) return {};
    const auto get_attribute =
        reinterpret_cast<GetAttribute>(::dlsym(library, "cuPointerGetAttribute"));  // NOLINT(*-reinterpret-cast)
    unsigned type = 0;
    const bool is_known =
        get_attribute != nullptr &&
        get_attribute(&type, kMemoryType, reinterpret_cast<std::uintptr_t>(data)) == 0;  // NOLINT(*-reinterpret-cast)
    if (is_known && type > kHostMax) refuse();
    return {};
  }
  /// Without CUDA no argument can be a stream.
  void synchronize(const MemoryLocation& /*location*/, const std::optional<DeviceStream>& /*stream*/) override {}
  std::unique_ptr<CopyQueue> make_queue(const MemoryLocation& /*location*/) override { refuse(); }
  std::unique_ptr<PinnedMemory> allocate_pinned(const MemoryLocation& /*location*/,
                                                std::size_t /*size_bytes*/) override {
    refuse();
  }
  std::unique_ptr<DeviceMemory> allocate(const MemoryLocation& /*location*/, std::size_t /*size_bytes*/) override {
    refuse();
  }
  std::unique_ptr<Registration> register_memory(const MemoryLocation& /*location*/,
                                                std::span<std::byte> /*memory*/) override {
    refuse();
  }
  std::unique_ptr<DeviceChecksums> make_checksums(const MemoryLocation& /*location*/) override { refuse(); }
  std::unique_ptr<DirectFile> open_direct_file(const MemoryLocation& /*location*/, int /*descriptor*/) override {
    refuse();
  }

 private:
  LoadedDriver loaded_;
};

}  // namespace

std::shared_ptr<Devices> system_devices() { return std::make_shared<NoDevices>(); }

}  // namespace kedge::device

#include "device/cuda_checksums.hpp"

#include <algorithm>
#include <vector>

#include "base/invariant.hpp"
#include "base/text.hpp"
#include "checksum/crc32c.hpp"
#include "device/cuda_context.hpp"
#include "device/kernels/crc32c_fold.hpp"
#include "device/kernels/image.hpp"
#include "kedge/error.hpp"

namespace kedge::device {
namespace {

/// The kernels, loaded into one context.
class Module {
 public:
  Module(const CudaDriver& driver, const MemoryLocation& location) : driver_(driver), location_(location) {
    if (kernel_image() == nullptr) {
      throw Error(ErrorCode::bad_state, "this Kedge has no GPU kernels: rebuild it with nvcc 11.8 or newer");
    }
    const ScopedContext current(driver_, location_);
    const ScopedRelaxedCapture uncaptured(driver_);
    driver_.require_success(driver_.module_load(&module_, kernel_image()),
                            compose("load kernels on GPU {}", location.ordinal));
  }
  ~Module() {
    run_in_context_if_alive(driver_, location_, [&] { (void)driver_.module_unload(module_); });
  }
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  /// `shared_bytes`: dynamic shared memory of each thread block.
  [[nodiscard]] CUfunction function(const char* name, int shared_bytes) const {
    const ScopedContext current(driver_, location_);
    const ScopedRelaxedCapture uncaptured(driver_);
    const std::string what = compose("find the kernel {} for GPU {}", name, location_.ordinal);
    CUfunction found = nullptr;
    driver_.require_success(driver_.module_get_function(&found, module_, name), what);
    driver_.require_success(
        driver_.function_set_attribute(found, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, shared_bytes), what);
    return found;
  }

 private:
  const CudaDriver& driver_;
  MemoryLocation location_;
  CUmodule module_ = nullptr;
};

constexpr unsigned kSharedBytes = kFoldRing * kUnitBytes;

class CudaChecksums final : public DeviceChecksums {
 public:
  CudaChecksums(const CudaDriver& driver, const MemoryLocation& location)
      : driver_(driver),
        location_(location),
        module_(driver, location),
        kernel_(module_.function("kedge_crc32c", kSharedBytes)),
        stream_(driver, location) {}

  void begin(std::span<const std::byte> memory, std::uint64_t piece_bytes) override {
    invariant(!memory.empty(), "a kernel has something to do");
    size_bytes_ = memory.size();
    piece_bytes_ = piece_bytes;
    const std::uint64_t pieces = (size_bytes_ + piece_bytes - 1) / piece_bytes;
    if (!raw_ || raw_->bytes().size() < pieces * sizeof(std::uint32_t)) {
      raw_.reset();
      raw_ = std::make_unique<CudaPinned>(driver_, location_, pieces * sizeof(std::uint32_t));
    }
    CUdeviceptr data = address_of(memory.data());
    CUdeviceptr raw = address_of(raw_->bytes().data());  // the GPU writes its results to host memory
    void* arguments[] = {&data, &size_bytes_, &piece_bytes_, &raw};
    const ScopedContext current(driver_, location_);
    const ScopedRelaxedCapture uncaptured(driver_);
    driver_.require_success(driver_.launch(kernel_, static_cast<unsigned>(pieces), 1, 1, kFoldStep, 1, 1, kSharedBytes,
                                           stream_.handle(), arguments, nullptr),
                            compose("compute checksums on GPU {}", location_.ordinal));
  }

  std::vector<std::uint32_t> finish() override {
    stream_.synchronize(compose("compute checksums on GPU {}", location_.ordinal));
    const std::uint64_t pieces = (size_bytes_ + piece_bytes_ - 1) / piece_bytes_;
    const auto* raw = reinterpret_cast<const std::uint32_t*>(raw_->bytes().data());  // NOLINT(*-reinterpret-cast)
    std::vector<std::uint32_t> all(raw, raw + pieces);
    for (std::uint64_t i = 0; i < pieces; ++i) {
      all[i] = crc32c_of_raw(all[i], std::min(piece_bytes_, size_bytes_ - i * piece_bytes_));
    }
    return all;
  }

 private:
  const CudaDriver& driver_;
  MemoryLocation location_;
  Module module_;
  CUfunction kernel_;
  std::unique_ptr<CudaPinned> raw_;
  std::uint64_t size_bytes_ = 0;
  std::uint64_t piece_bytes_ = 1;
  CudaStream stream_;  // last, so destroyed first: waits for the kernel, which uses the other members
};

}  // namespace

std::unique_ptr<DeviceChecksums> cuda_checksums(const CudaDriver& driver, const MemoryLocation& location) {
  return std::make_unique<CudaChecksums>(driver, location);
}

}  // namespace kedge::device

// Checksums by the kernel of device/kernels.
#pragma once

#include <memory>

#include "device/cuda_driver.hpp"
#include "device/devices.hpp"

namespace kedge::device {

/// Throws Error if this build has no kernels, or none for this GPU.
[[nodiscard]] std::unique_ptr<DeviceChecksums> cuda_checksums(const CudaDriver& driver, const MemoryLocation& location);

}  // namespace kedge::device

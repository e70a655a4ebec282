// Files that CUDA devices write with cuFile.
#pragma once

#include <memory>

#include "device/cuda_driver.hpp"
#include "device/cufile.hpp"
#include "device/devices.hpp"

namespace kedge::device {

/// `kinds` are the kinds of storage the file may be on (storage_kinds). Throws Error{bad_state} if cuFile cannot write
/// the file, or not in the wanted way, and what CudaDriver throws. Both libraries must outlive it.
[[nodiscard]] std::unique_ptr<DirectFile> cuda_direct_file(const CudaDriver& driver, const CuFile& cufile,
                                                           const MemoryLocation& location, int descriptor,
                                                           unsigned kinds);

}  // namespace kedge::device

// Files that CUDA devices write by cuFile.
#pragma once

#include <memory>

#include "device/cuda_driver.hpp"
#include "device/cufile.hpp"
#include "device/devices.hpp"

namespace kedge::device {

/// `kinds` of storage that the file may be on (storage_kinds). Throws Error{bad_state} where cuFile does not serve, or
/// not in a way that is wanted; and what CudaDriver throws. Both libraries must outlive it.
[[nodiscard]] std::unique_ptr<DirectFile> cuda_direct_file(const CudaDriver& driver, const CuFile& cufile,
                                                           const Location& location, int descriptor, unsigned kinds);

}  // namespace kedge::device

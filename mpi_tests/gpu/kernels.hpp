// Kedge's kernels, called as they are.
#pragma once

#include <cstdint>

#include "device/kernels/crc32c_fold.hpp"
#include "gpu/gpu.hpp"

namespace kedge::gpu {

/// Each begins, on the default stream, and returns.
class Kernels {
 public:
  explicit Kernels(const Gpu& gpu);
  [[nodiscard]] bool exist() const noexcept { return checksums_ != nullptr; }

  /// `raw` has room for 4 bytes per piece.
  void checksums(CUdeviceptr data, std::uint64_t size_bytes, std::uint64_t piece_bytes, CUdeviceptr raw) const;

 private:
  const Gpu& gpu_;
  CUfunction checksums_;
};

}  // namespace kedge::gpu

// Kedge's kernels, called as they are.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "device/kernels/combination.hpp"
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
  /// The XOR of these, which are of `size_bytes` each; whole words of 16 bytes.
  void exclusive_or(std::span<const CUdeviceptr> data, std::uint64_t size_bytes, CUdeviceptr output) const;
  /// A sum for each row of coefficients.
  void combine(std::span<const CUdeviceptr> data, std::uint64_t size_bytes,
               const std::vector<std::vector<std::uint8_t>>& rows, std::span<const CUdeviceptr> outputs) const;

 private:
  const Gpu& gpu_;
  CUfunction checksums_;
  CUfunction exclusive_or_ = nullptr;
  std::vector<CUfunction> combine_;  ///< of 1, 2 ... outputs
};

}  // namespace kedge::gpu

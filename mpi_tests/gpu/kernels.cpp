#include "gpu/kernels.hpp"

namespace kedge::gpu {
namespace {

constexpr unsigned kSharedBytes = device::kFoldRing * device::kUnitBytes;

}  // namespace

Kernels::Kernels(const Gpu& gpu) : gpu_(gpu), checksums_(gpu.kernel("kedge_crc32c", kSharedBytes)) {}

void Kernels::checksums(CUdeviceptr data, std::uint64_t size_bytes, std::uint64_t piece_bytes, CUdeviceptr raw) const {
  void* arguments[] = {&data, &size_bytes, &piece_bytes, &raw};
  const std::uint64_t pieces = (size_bytes + piece_bytes - 1) / piece_bytes;
  gpu_.launch(checksums_, static_cast<unsigned>(pieces), device::kFoldStep, kSharedBytes, arguments);
}

}  // namespace kedge::gpu

#include "gpu/kernels.hpp"

#include <string>

namespace kedge::gpu {
namespace {

constexpr unsigned kSharedBytes = device::kFoldRing * device::kUnitBytes;
constexpr unsigned kBlocks = 2112;  // more than are on any GPU at once
constexpr unsigned kThreads = 256;

device::Combination combination(std::span<const CUdeviceptr> data, std::uint64_t size_bytes) {
  device::Combination what;
  what.words = size_bytes / 16;
  what.inputs = static_cast<std::uint32_t>(data.size());
  for (std::size_t i = 0; i < data.size(); ++i) {
    what.input[i] = {reinterpret_cast<const void*>(data[i]), what.words};  // NOLINT(*-reinterpret-cast)
  }
  return what;
}

}  // namespace

Kernels::Kernels(const Gpu& gpu) : gpu_(gpu), checksums_(gpu.kernel("kedge_crc32c", kSharedBytes)) {
  if (!exist()) return;
  exclusive_or_ = gpu.kernel("kedge_xor", 0);
  for (unsigned outputs = 1; outputs <= device::kOutputsMax; ++outputs) {
    combine_.push_back(gpu.kernel(("kedge_combine_" + std::to_string(outputs)).c_str(), 0));
  }
}

void Kernels::checksums(CUdeviceptr data, std::uint64_t size_bytes, std::uint64_t piece_bytes, CUdeviceptr raw) const {
  void* arguments[] = {&data, &size_bytes, &piece_bytes, &raw};
  const std::uint64_t pieces = (size_bytes + piece_bytes - 1) / piece_bytes;
  gpu_.launch(checksums_, static_cast<unsigned>(pieces), device::kFoldStep, kSharedBytes, arguments);
}

void Kernels::exclusive_or(std::span<const CUdeviceptr> data, std::uint64_t size_bytes, CUdeviceptr output) const {
  device::Combination what = combination(data, size_bytes);
  what.output[0] = reinterpret_cast<void*>(output);  // NOLINT(*-reinterpret-cast)
  void* arguments[] = {&what};
  gpu_.launch(exclusive_or_, kBlocks, kThreads, 0, arguments);
}

void Kernels::combine(std::span<const CUdeviceptr> data, std::uint64_t size_bytes,
                      const std::vector<std::vector<std::uint8_t>>& rows, std::span<const CUdeviceptr> outputs) const {
  device::Combination what = combination(data, size_bytes);
  for (std::size_t out = 0; out < rows.size(); ++out) {
    what.output[out] = reinterpret_cast<void*>(outputs[out]);  // NOLINT(*-reinterpret-cast)
    for (std::size_t i = 0; i < data.size(); ++i) what.products[i][out] = device::products_of(rows[out][i]);
  }
  void* arguments[] = {&what};
  gpu_.launch(combine_.at(rows.size() - 1), kBlocks, kThreads, 0, arguments);
}

}  // namespace kedge::gpu

// Kedge's kernels on a real GPU compute what the processor does, to the bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "checksum/crc32c.hpp"
#include "gpu/gpu.hpp"
#include "gpu/kernels.hpp"

namespace kedge::gpu::gpu_kernels_test {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20U;

class KernelsOnGpu : public testing::Test {
 protected:
  void SetUp() override {
    gpu.use();
    if (!kernels.exist()) GTEST_SKIP() << "this build has no kernels: there is no nvcc";
  }
  std::string why;
  const std::unique_ptr<Gpu> first = Gpu::first(why);
  const Gpu& gpu = *first;
  const Kernels kernels{gpu};
};

TEST_F(KernelsOnGpu, ChecksumsAreThoseOfTheProcessor) {
  const std::size_t far = std::size_t{device::kFoldFar} * device::kUnitBytes;
  for (const std::size_t size : {std::size_t{1}, std::size_t{15}, std::size_t{17}, far - 1, far + 1, 3 * kMiB + 5}) {
    for (const std::size_t offset : {0U, 1U, 4U, 16U}) {
      for (const std::uint64_t piece : {std::uint64_t{100'000}, std::uint64_t{2 * kMiB}}) {
        const Array array(gpu, size + offset);
        const auto bytes = noise(size, static_cast<std::uint32_t>(size));
        gpu.upload(array.at + offset, bytes.data(), size);
        const std::size_t pieces = (size + piece - 1) / piece;
        const Array raw(gpu, 4 * pieces);
        kernels.checksums(array.at + offset, size, piece, raw.at);
        gpu.synchronize();
        const auto found = raw.contents();
        for (std::size_t i = 0; i < pieces; ++i) {
          const auto own = std::span(bytes).subspan(i * piece, std::min<std::size_t>(piece, size - i * piece));
          std::uint32_t one = 0;
          std::memcpy(&one, found.data() + 4 * i, 4);
          EXPECT_EQ(crc32c_of_raw(one, own.size()), crc32c(own)) << size << " from " << offset << " by " << piece;
        }
      }
    }
  }
}

}  // namespace
}  // namespace kedge::gpu::gpu_kernels_test

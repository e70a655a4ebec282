// Copies with a checksum: each kernel that this processor has gives the bytes that memcpy gives and the checksum of
// ISA-L, for every length, alignment and split, and touches nothing beside them.
#include "checksum/kernels.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "checksum/copy_with_checksum.hpp"
#include "checksum/crc32c.hpp"
#include "kedge/error.hpp"

namespace kedge::checksum::kernels_test {
namespace {

constexpr std::size_t kGuard = 128;

std::vector<std::byte> noise(std::size_t size, std::uint32_t seed = 12345) {
  std::vector<std::byte> bytes(size);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>((seed = seed * 1664525U + 1013904223U) >> 24U);
  return bytes;
}

using Parts = std::vector<std::span<const std::byte>>;

std::vector<std::byte> combined(std::span<const std::byte> a, std::span<const std::byte> b) {
  std::vector<std::byte> sum(a.size());
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = a[i] ^ b[i];
  return sum;
}

/// Whole pages, before and after which nothing may be touched.
class Fenced {
 public:
  explicit Fenced(std::size_t pages) : bytes_(pages * page()), whole_(bytes_ + 2 * page()) {
    void* memory = ::mmap(nullptr, whole_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) std::abort();
    all_ = static_cast<std::byte*>(memory);
    if (::mprotect(all_ + page(), bytes_, PROT_READ | PROT_WRITE) != 0) std::abort();
  }
  ~Fenced() { ::munmap(all_, whole_); }
  Fenced(const Fenced&) = delete;
  Fenced& operator=(const Fenced&) = delete;
  [[nodiscard]] std::span<std::byte> bytes() const { return {all_ + page(), bytes_}; }

 private:
  static std::size_t page() { return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)); }
  std::size_t bytes_;
  std::size_t whole_;
  std::byte* all_ = nullptr;
};

class Kernels : public testing::TestWithParam<std::size_t> {
 protected:
  void SetUp() override {
    if (!kernel().is_supported) GTEST_SKIP() << "this processor has no " << kernel().name;
  }
  [[nodiscard]] static const Kernel& kernel() { return kernels()[GetParam()]; }

  /// All copies of `size` bytes of `source_`, from and to what lies so far behind a line.
  void check(std::size_t size, std::size_t from, std::size_t to) {
    const auto a = std::span<const std::byte>(source_).subspan(from, size);
    const auto b = std::span<const std::byte>(other_).subspan(from, size);
    expect(a, to, [&](auto target) { return copy_with_checksum(target, a, 77, kernel()); });
    expect(a, to, [&](auto target) { return copy_in_caches_with_checksum(target, a, 77, kernel()); });
    const auto xor_of = [&](const Parts& parts) {
      return [&, parts](auto target) { return xor_with_checksum(target, parts, 77, kernel()); };
    };
    expect(combined(a, b), to, [&](auto target) {
      return xor_in_caches_with_checksum(target, Parts{a, b}, 77, kernel());
    });
    expect(combined(a, b), to, xor_of({a, b}));
    expect(b, to, xor_of({a, b, a}));
    expect(a, to, xor_of({a}));
  }

 private:
  template <class Copy>
  static void expect(std::span<const std::byte> wanted, std::size_t to, Copy&& copy) {
    static std::vector<std::byte> memory(kLargest + 4 * kGuard);
    std::byte* line = memory.data() + kGuard - reinterpret_cast<std::uintptr_t>(memory.data()) % kLineBytes;
    const std::span target(line + to, wanted.size());
    std::fill(target.data() - kGuard / 2, target.data() + target.size() + kGuard, std::byte{0xee});
    const std::uint32_t crc = copy(target);
    ASSERT_EQ(crc, crc32c(wanted, 77)) << wanted.size() << " bytes to " << to;
    ASSERT_TRUE(std::ranges::equal(target, wanted)) << wanted.size() << " bytes to " << to;
    const auto is_guard = [](std::byte byte) { return byte == std::byte{0xee}; };
    ASSERT_TRUE(std::all_of(target.data() - kGuard / 2, target.data(), is_guard) &&
                std::all_of(target.data() + target.size(), target.data() + target.size() + kGuard, is_guard))
        << wanted.size() << " bytes to " << to << ": written beside them";
  }

 protected:
  static constexpr std::size_t kLargest = 70'000;
  std::vector<std::byte> source_ = noise(kLargest + kGuard);
  std::vector<std::byte> other_ = noise(kLargest + kGuard, 999);
};

TEST_P(Kernels, EveryLengthIsAPlainCopy) {
  for (std::size_t size = 0; size <= 4096; ++size) check(size, size % 7, size % 64);
  for (std::size_t size = 16'384 - 300; size <= 16'384 + 300; ++size) check(size, size % 64, size % 5);
}

TEST_P(Kernels, EveryAlignmentIsAPlainCopy) {
  for (const std::size_t size : {std::size_t{700}, std::size_t{16'384}}) {
    for (std::size_t from = 0; from < kLineBytes; ++from) {
      for (std::size_t to = 0; to < kLineBytes; ++to) check(size, from, to);
    }
  }
}

TEST_P(Kernels, AChecksumGoesOnWhereverItWasInterrupted) {
  const auto whole = std::span<const std::byte>(source_).first(1500);
  const std::uint32_t crc = crc32c(whole, 3);
  std::vector<std::byte> target(whole.size());
  for (std::size_t cut = 0; cut <= whole.size(); ++cut) {
    const auto to = std::span(target);
    const std::uint32_t first = copy_with_checksum(to.first(cut), whole.first(cut), 3, kernel());
    ASSERT_EQ(copy_with_checksum(to.subspan(cut), whole.subspan(cut), first, kernel()), crc) << cut;
  }
}

TEST_P(Kernels, AnyBitThatIsFlippedChangesTheChecksum) {
  auto bytes = noise(1024);
  std::vector<std::byte> target(bytes.size());
  const std::uint32_t crc = copy_with_checksum(target, bytes, 0, kernel());
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    bytes[bit / 8] ^= std::byte{1} << bit % 8;
    ASSERT_NE(copy_with_checksum(target, bytes, 0, kernel()), crc) << bit;
    bytes[bit / 8] ^= std::byte{1} << bit % 8;
  }
}

TEST_P(Kernels, NothingBeyondTheBytesIsTouched) {
  const Fenced from(5);
  const Fenced other(5);
  const Fenced to(5);
  std::ranges::copy(noise(from.bytes().size()), from.bytes().begin());
  for (const std::size_t size : {1UL, 63UL, 64UL, 255UL, 256UL, 257UL, 511UL, 4096UL, 16'384UL, 16'385UL, 20'480UL}) {
    for (const bool at_end : {false, true}) {
      const auto part = [&](const Fenced& fenced) {
        return at_end ? fenced.bytes().last(size) : fenced.bytes().first(size);
      };
      const std::uint32_t crc = crc32c(part(from));
      EXPECT_EQ(copy_with_checksum(part(to), part(from), 0, kernel()), crc) << size;
      EXPECT_EQ(copy_in_caches_with_checksum(part(to), part(from), 0, kernel()), crc) << size;
      EXPECT_EQ(xor_with_checksum(part(to), Parts{part(from), part(other)}, 0, kernel()), crc)
          << size;  // the other: zeros
      EXPECT_EQ(xor_in_caches_with_checksum(part(to), Parts{part(from), part(other)}, 0, kernel()), crc) << size;
    }
  }
}

TEST_P(Kernels, OneSourceOfACombinationMayBeItsTarget) {
  for (const std::size_t size : {std::size_t{100}, std::size_t{5000}, std::size_t{65'537}}) {
    const auto b = std::span<const std::byte>(other_).first(size);
    const auto wanted = combined(std::span(source_).first(size), b);
    for (const bool is_first : {false, true}) {
      std::vector<std::byte> target(source_.begin(), source_.begin() + static_cast<std::ptrdiff_t>(size));
      const std::uint32_t crc = is_first ? xor_with_checksum(target, Parts{target, b}, 0, kernel())
                                         : xor_with_checksum(target, Parts{b, target}, 0, kernel());
      EXPECT_EQ(crc, crc32c(wanted)) << size;
      EXPECT_EQ(target, wanted) << size;
    }
  }
}

TEST_P(Kernels, OverlappingMemoryIsRefused) {
  const std::span all(source_);
  const auto refused = [](auto&& copy) {
    try {
      (void)copy();
      return false;
    } catch (const Error& error) {
      return error.code() == ErrorCode::invalid_argument;
    }
  };
  const auto before = source_;
  for (const std::size_t apart : {0U, 1U, 63U, 64U, 999U}) {
    const auto low = all.first(1000);
    const auto high = all.subspan(apart, 1000);
    EXPECT_TRUE(refused([&] { return copy_with_checksum(low, high, 0, kernel()); })) << apart;
    EXPECT_TRUE(refused([&] { return copy_with_checksum(high, low, 0, kernel()); })) << apart;
    if (apart == 0) continue;
    EXPECT_TRUE(refused([&] { return xor_with_checksum(low, Parts{high, low}, 0, kernel()); })) << apart;
    EXPECT_TRUE(refused([&] { return xor_with_checksum(low, Parts{low, high}, 0, kernel()); })) << apart;
  }
  EXPECT_EQ(source_, before);
  EXPECT_FALSE(refused([&] { return copy_with_checksum(all.first(1000), all.subspan(1000, 1000), 0, kernel()); }));
  EXPECT_TRUE(refused([&] { return copy_with_checksum(all.first(10), all.subspan(1000, 11), 0, kernel()); }));
}

TEST_P(Kernels, RandomCopiesAreThoseOfMemcpyAndIsaL) {
  const int cases = std::getenv("KEDGE_TEST_FULL") != nullptr ? 1'000'000 : 10'000;
  std::mt19937 random(20261128);
  for (int i = 0; i < cases; ++i) {
    const std::size_t limit = i % 16 == 0 ? kLargest : 3000;
    check(random() % limit, random() % kLineBytes, random() % kLineBytes);
    if (HasFatalFailure()) return;
  }
}

std::string name_of(const testing::TestParamInfo<std::size_t>& info) { return kernels()[info.param].name; }

INSTANTIATE_TEST_SUITE_P(Of, Kernels, testing::Range(std::size_t{0}, kernels().size()), name_of);

TEST(ChosenKernel, IsTheBestOrTheOneThatTheEnvironmentNames) {
  const char* named = std::getenv("KEDGE_TEST_CHECKSUM");
  if (named != nullptr) {
    const auto found = std::ranges::find(kernels(), std::string_view(named), &Kernel::name);
    ASSERT_NE(found, kernels().end()) << named;
    if (!found->is_supported) GTEST_SKIP() << "this processor has no " << named;
    EXPECT_STREQ(kernel().name, named);
    return;
  }
  EXPECT_TRUE(kernel().is_supported);
  EXPECT_EQ(&kernel(), &*std::ranges::find(kernels(), true, &Kernel::is_supported));
  EXPECT_TRUE(kernels().back().is_supported) << "the last must do everywhere";
}

}  // namespace
}  // namespace kedge::checksum::kernels_test

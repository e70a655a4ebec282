#include "format/fill_value.hpp"

#include <algorithm>
#include <span>

#include "base/invariant.hpp"
#include "format/members.hpp"

namespace kedge::format {
namespace {

std::vector<std::byte> little_endian(std::uint64_t bits, std::size_t size_bytes) {
  std::vector<std::byte> bytes(size_bytes);
  for (std::size_t i = 0; i < size_bytes; ++i) bytes[i] = static_cast<std::byte>(bits >> (8 * i) & 0xFFU);
  return bytes;
}

// IEEE 754-2019, 6.2.1: the quiet NaN has all bits of the exponent and the first of the mantissa.
constexpr std::uint64_t kNan16 = 0x7E00;
constexpr std::uint64_t kNanBrain16 = 0x7FC0;
constexpr std::uint64_t kNan32 = 0x7FC00000;
constexpr std::uint64_t kNan64 = 0x7FF8000000000000;
constexpr std::uint64_t kNanE5M2 = 0x7E;
// OCP 8-bit Floating Point Specification 1.0, 5.2: no infinities; the only NaN has all bits set.
constexpr std::uint64_t kNanE4M3 = 0x7F;

std::vector<std::byte> twice(std::vector<std::byte> part) {
  std::vector<std::byte> both = part;
  both.insert(both.end(), part.begin(), part.end());
  return both;
}

}  // namespace

std::vector<std::byte> fill_value(DataType dtype) {
  const std::size_t size = size_bytes(dtype);
  switch (dtype) {
    case DataType::int8:
    case DataType::int16:
    case DataType::int32:
    case DataType::int64: return little_endian(std::uint64_t{1} << (8 * size - 1), size);
    case DataType::uint8:
    case DataType::uint16:
    case DataType::uint32:
    case DataType::uint64:
    case DataType::boolean:
    case DataType::opaque: return std::vector(size, std::byte{0xFF});
    case DataType::float16: return little_endian(kNan16, size);
    case DataType::bfloat16: return little_endian(kNanBrain16, size);
    case DataType::float32: return little_endian(kNan32, size);
    case DataType::float64: return little_endian(kNan64, size);
    case DataType::float8_e4m3fn: return little_endian(kNanE4M3, size);
    case DataType::float8_e5m2: return little_endian(kNanE5M2, size);
    case DataType::complex64: return twice(little_endian(kNan32, size / 2));
    case DataType::complex128: return twice(little_endian(kNan64, size / 2));
  }
  invariant(false, "every data type has a fill value");
  return {};
}

std::vector<std::byte> fill_value(std::string_view members, std::uint64_t struct_bytes) {
  std::vector<std::byte> bytes(struct_bytes);
  for (const Member& member : parse_members(members)) {
    const std::vector<std::byte> one = fill_value(member.dtype);
    std::uint64_t count = 0;
    invariant(element_count(member.shape, count), "members lie inside their struct");
    for (std::uint64_t i = 0; i < count; ++i) {
      std::ranges::copy(one, std::span(bytes).subspan(member.offset + i * one.size(), one.size()).begin());
    }
  }
  return bytes;
}

}  // namespace kedge::format

#include "interop/plain_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <limits>

#include "checksum/crc32c.hpp"

namespace kedge::testing {
namespace {

void require(bool ok) {
  if (!ok) throw Error(ErrorCode::io, "a system call on the test's file failed");
}

template <class T>
void append(std::vector<std::byte>& bytes, T value) {
  const auto raw = std::bit_cast<std::array<std::byte, sizeof(T)>>(value);
  bytes.insert(bytes.end(), raw.begin(), raw.end());
}

// Of a number that a float of these fields holds exactly, not subnormal.
std::uint32_t narrowed(float value, unsigned exponent_bits, unsigned mantissa_bits) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = bits >> 31U << (exponent_bits + mantissa_bits);
  if ((bits & 0x7fffffffU) == 0) return sign;
  const std::uint32_t bias = (1U << (exponent_bits - 1)) - 1;
  const std::uint32_t exponent = (bits >> 23U & 0xffU) - 127 + bias;
  return sign | exponent << mantissa_bits | (bits & 0x7fffffU) >> (23 - mantissa_bits);
}

std::uint64_t distinct_elements(DataType dtype) {
  switch (dtype) {
    case DataType::bfloat16: return 127;
    case DataType::float8_e4m3fn: return 20;
    case DataType::float8_e5m2: return 12;
    default: return std::numeric_limits<std::uint64_t>::max();
  }
}

}  // namespace

PlainFile::PlainFile(const std::string& path) : number_(::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600)) {
  if (number_ < 0) throw Error(ErrorCode::io, "cannot make " + path);
}

PlainFile::~PlainFile() { ::close(number_); }

void PlainFile::reserve(std::uint64_t size_bytes) {
  struct stat status {};
  require(::fstat(number_, &status) == 0);
  if (size_bytes > static_cast<std::uint64_t>(status.st_size)) set_size(size_bytes);
}

void PlainFile::set_size(std::uint64_t size_bytes) {
  require(::ftruncate(number_, static_cast<off_t>(size_bytes)) == 0);
}

std::uint32_t PlainFile::write_with_crc(std::uint64_t offset, std::span<const std::byte> bytes, std::uint32_t crc) {
  const ssize_t written = ::pwrite(number_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
  require(written == static_cast<ssize_t>(bytes.size()));
  return crc32c(bytes, crc);
}

std::uint32_t PlainFile::read_with_crc(std::uint64_t offset, std::span<std::byte> bytes, std::uint32_t crc) {
  const ssize_t got = ::pread(number_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
  require(got == static_cast<ssize_t>(bytes.size()));
  return crc32c(bytes, crc);
}

std::uint32_t PlainFile::checksum(std::uint64_t offset, std::uint64_t length, std::uint32_t crc) {
  std::vector<std::byte> bytes(length);
  return read_with_crc(offset, bytes, crc);
}

void append_element(std::vector<std::byte>& bytes, DataType dtype, std::uint64_t i) {
  const auto whole = static_cast<std::int64_t>(i % distinct_elements(dtype)) - 3;
  const auto real = static_cast<double>(whole) / 2;
  const auto narrow = static_cast<float>(real);
  switch (dtype) {
    case DataType::int8: return append(bytes, static_cast<std::int8_t>(whole));
    case DataType::int16: return append(bytes, static_cast<std::int16_t>(whole));
    case DataType::int32: return append(bytes, static_cast<std::int32_t>(whole));
    case DataType::int64: return append(bytes, whole);
    case DataType::uint8: return append(bytes, static_cast<std::uint8_t>(i));
    case DataType::uint16: return append(bytes, static_cast<std::uint16_t>(i));
    case DataType::uint32: return append(bytes, static_cast<std::uint32_t>(i));
    case DataType::uint64: return append(bytes, i);
    case DataType::float16: return append(bytes, static_cast<std::uint16_t>(narrowed(narrow, 5, 10)));
    case DataType::bfloat16: return append(bytes, static_cast<std::uint16_t>(narrowed(narrow, 8, 7)));
    case DataType::float32: return append(bytes, narrow);
    case DataType::float64: return append(bytes, real);
    case DataType::complex64: append(bytes, static_cast<float>(i) / 2); return append(bytes, -static_cast<float>(i));
    case DataType::complex128: append(bytes, static_cast<double>(i) / 2); return append(bytes, -static_cast<double>(i));
    case DataType::boolean: return append(bytes, static_cast<std::uint8_t>(i % 2));
    case DataType::opaque: return append(bytes, static_cast<std::uint8_t>(7 * i));
    case DataType::float8_e4m3fn: return append(bytes, static_cast<std::uint8_t>(narrowed(narrow, 4, 3)));
    case DataType::float8_e5m2: return append(bytes, static_cast<std::uint8_t>(narrowed(narrow, 5, 2)));
  }
}

}  // namespace kedge::testing

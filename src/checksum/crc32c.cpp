#include "checksum/crc32c.hpp"

#include <isa-l/crc.h>

#include <algorithm>
#include <array>

#include "checksum/fold.hpp"
#include "checksum/prefetch.hpp"

namespace kedge {
namespace {

// Appending zero bits to a message is a linear map over GF(2) on its CRC: a 32 x 32 bit matrix, one word per
// column. Squaring it doubles the number of bits. (M. Adler's method in zlib's crc32_combine.)
using BitMatrix = std::array<std::uint32_t, 32>;

constexpr std::uint32_t multiply(const BitMatrix& matrix, std::uint32_t vector) {
  std::uint32_t sum = 0;
  for (std::size_t bit = 0; vector != 0; ++bit, vector >>= 1U) {
    if ((vector & 1U) != 0) sum ^= matrix[bit];
  }
  return sum;
}

constexpr BitMatrix multiply_by_itself(const BitMatrix& matrix) {
  BitMatrix result{};
  for (std::size_t bit = 0; bit < result.size(); ++bit) result[bit] = multiply(matrix, matrix[bit]);
  return result;
}

// Entry k appends 2^k zero bytes.
constexpr std::array<BitMatrix, 64> make_zero_byte_powers() {
  BitMatrix one_bit{};
  one_bit[0] = checksum::kPolynomial;
  for (std::size_t bit = 1; bit < one_bit.size(); ++bit) one_bit[bit] = 1U << (bit - 1);
  std::array<BitMatrix, 64> powers{};
  powers[0] = multiply_by_itself(multiply_by_itself(multiply_by_itself(one_bit)));
  for (std::size_t k = 1; k < powers.size(); ++k) powers[k] = multiply_by_itself(powers[k - 1]);
  return powers;
}

std::uint32_t append_zero_bytes(std::uint32_t crc, std::uint64_t length) {
  static const std::array<BitMatrix, 64> powers = make_zero_byte_powers();
  for (std::size_t k = 0; length != 0; ++k, length >>= 1U) {
    if ((length & 1U) != 0) crc = multiply(powers[k], crc);
  }
  return crc;
}

}  // namespace

std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t crc) noexcept {
  constexpr std::size_t kPiece = std::size_t{1} << 30U;  // ISA-L takes an int
  crc = ~crc;
  for (std::size_t done = 0; done < bytes.size(); done += kPiece) {
    const auto piece = bytes.subspan(done, std::min(kPiece, bytes.size() - done));
    // ISA-L's prototype lacks const; it only reads.
    crc = crc32_iscsi(reinterpret_cast<unsigned char*>(
                          const_cast<std::byte*>(piece.data())),  // NOLINT(*-const-cast,*-reinterpret-cast)
                      static_cast<int>(piece.size()), crc);
  }
  return ~crc;
}

std::uint32_t crc32c_from_memory(std::span<const std::byte> bytes, std::uint32_t crc) noexcept {
  for (std::size_t at = 0; at < bytes.size(); at += kPrefetchBytes) {
    prefetch(bytes, at);
    crc = crc32c(bytes.subspan(at, std::min(kPrefetchBytes, bytes.size() - at)), crc);
  }
  return crc;
}

std::uint32_t crc32c_zeros(std::uint64_t length, std::uint32_t crc) noexcept {
  return ~append_zero_bytes(~crc, length);
}

std::uint32_t crc32c_combine(std::uint32_t crc_a, std::uint32_t crc_b, std::uint64_t length_b) noexcept {
  return append_zero_bytes(crc_a, length_b) ^ crc_b;
}

std::uint32_t crc32c_of_raw(std::uint32_t raw, std::uint64_t length) noexcept { return raw ^ crc32c_zeros(length, 0); }

}  // namespace kedge

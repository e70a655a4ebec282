// Reed-Solomon over spans of bytes, by ISA-L: any alignment, length and count. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace kedge::codec {

/// Bytes times a number of GF(2^8), whose multiplication is ISA-L's (polynomial 0x11d); 1 leaves them as they are.
struct Term {
  std::span<const std::byte> bytes;
  std::uint8_t coefficient = 1;
};

/// out = sum of the terms, which is their XOR where all coefficients are 1. A term shorter than `out` is continued with
/// zeros, none may be longer. No terms give zeros. `out` may be the bytes of one of them, and overlaps nothing else.
void combine(std::span<std::byte> out, std::span<const Term> terms);

/// A code of `data` data symbols, numbered from 0, and `parity` parity symbols after them: any `data` of them determine
/// all. One parity symbol is the XOR of all data; of several, parity symbol j is the sum of data symbol i times
/// 1/((data + j) XOR i): Cauchy's coefficients, as of ISA-L's gf_gen_cauchy1_matrix.
class ErasureCode {
 public:
  struct Part {
    std::uint32_t symbol = 0;
    std::uint8_t coefficient = 1;
    bool operator==(const Part&) const = default;
  };

  /// At least one of each, 256 together at most; else throws Error{invalid_argument}.
  ErasureCode(std::uint32_t data, std::uint32_t parity);

  [[nodiscard]] std::uint32_t data() const noexcept { return data_; }
  [[nodiscard]] std::uint32_t parity() const noexcept { return parity_; }
  /// Coefficient of data symbol `data` in parity symbol `parity`, both counted from 0.
  [[nodiscard]] std::uint8_t coefficient(std::uint32_t parity, std::uint32_t data) const;

  /// A symbol as a sum of those that are present: of data where it can be, and of as few parity symbols as data symbols
  /// are missing. `present` has an entry for each symbol. Throws Error{unrecoverable} if too few are.
  [[nodiscard]] std::vector<Part> solve_for(std::uint32_t wanted, const std::vector<bool>& present) const;

 private:
  std::uint32_t data_;
  std::uint32_t parity_;
  std::vector<std::uint8_t> rows_;  ///< of the parity symbols, one after the other
};

}  // namespace kedge::codec

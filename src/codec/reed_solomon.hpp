// Pure. Reed-Solomon over spans of bytes of any alignment, length and count, by ISA-L.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace kedge::codec {

/// Bytes and their coefficient in GF(2^8), with ISA-L's multiplication (polynomial 0x11d).
struct Term {
  std::span<const std::byte> bytes;
  std::uint8_t coefficient = 1;
};

/// Sets `out` to the sum of the terms: their XOR if all coefficients are 1. Terms shorter than `out` are continued with
/// zeros; none may be longer. Without terms, `out` becomes zeros. It may be one term's bytes, and must not overlap
/// others.
void combine_into(std::span<std::byte> out, std::span<const Term> terms);

/// A code of `data` data symbols, numbered from 0, followed by `parity` parity symbols: any `data` of them determine
/// all. A single parity symbol is the XOR of the data. Of several, parity symbol j is the sum of each data symbol i
/// times the Cauchy coefficient 1/((data + j) XOR i), as in ISA-L's gf_gen_cauchy1_matrix.
class ErasureCode {
 public:
  struct WeightedSymbol {
    std::uint32_t symbol = 0;
    std::uint8_t coefficient = 1;
    bool operator==(const WeightedSymbol&) const = default;
  };

  /// Needs at least one symbol of each kind and at most 256 in all; else throws Error{invalid_argument}.
  ErasureCode(std::uint32_t data_count, std::uint32_t parity_count);

  [[nodiscard]] std::uint32_t data_count() const noexcept { return data_count_; }
  [[nodiscard]] std::uint32_t parity_count() const noexcept { return parity_count_; }
  /// Returns the coefficient of data symbol `data` in parity symbol `parity`, both counted from 0.
  [[nodiscard]] std::uint8_t coefficient(std::uint32_t parity, std::uint32_t data) const;

  /// Returns the wanted symbol as a sum of present ones, with as few parity symbols as possible. `present` has an entry
  /// for each symbol. Throws Error{unrecoverable} if too few are present.
  [[nodiscard]] std::vector<WeightedSymbol> solve_for(std::uint32_t wanted, const std::vector<bool>& present) const;

 private:
  std::uint32_t data_count_;
  std::uint32_t parity_count_;
  std::vector<std::uint8_t> parity_rows_;  ///< coefficients of the parity symbols, row after row
};

}  // namespace kedge::codec

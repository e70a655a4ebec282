#include "codec/reed_solomon.hpp"

#include <isa-l/erasure_code.h>

#include <algorithm>

#include "codec/xor.hpp"
#include "kedge/error.hpp"

namespace kedge::codec {
namespace {

constexpr std::size_t kTableBytes = 32;                         // of ISA-L's table for one coefficient
constexpr std::size_t kEncodeBytesMax = std::size_t{1} << 30U;  // of one call, which takes its length as an int
constexpr std::size_t kSumBlockBytes = std::size_t{64} << 10U;  // of a piece, if the result is one of the sources

/// out = sum of terms of equal length, none of which is `out`.
void multiply(std::span<std::byte> out, std::span<const Term> terms) {
  std::vector<std::uint8_t> coefficients;
  for (const Term& term : terms) coefficients.push_back(term.coefficient);
  std::vector<std::uint8_t> tables(kTableBytes * terms.size());
  const int count = static_cast<int>(terms.size());
  ec_init_tables(count, 1, coefficients.data(), tables.data());
  std::vector<unsigned char*> sources(terms.size());
  for (std::size_t done = 0; done < out.size(); done += kEncodeBytesMax) {
    // ISA-L's prototype lacks const; it writes to the result only.
    std::ranges::transform(terms, sources.begin(), [&](const Term& term) {
      return const_cast<unsigned char*>(                                      // NOLINT(*-const-cast)
          reinterpret_cast<const unsigned char*>(term.bytes.data() + done));  // NOLINT(*-reinterpret-cast)
    });
    auto* result = reinterpret_cast<unsigned char*>(out.data() + done);  // NOLINT(*-reinterpret-cast)
    ec_encode_data(static_cast<int>(std::min(kEncodeBytesMax, out.size() - done)), count, 1, tables.data(),
                   sources.data(), &result);
  }
}

/// Multiplies in place: `out` may be one of the terms.
void multiply_in_place(std::span<std::byte> out, std::span<const Term> terms) {
  const bool apart = std::ranges::none_of(terms, [&](const Term& term) { return term.bytes.data() == out.data(); });
  if (apart) {
    multiply(out, terms);
    return;
  }
  std::vector<std::byte> sum(std::min(kSumBlockBytes, out.size()));
  std::vector<Term> blocks(terms.begin(), terms.end());
  for (std::size_t done = 0; done < out.size(); done += kSumBlockBytes) {
    const auto block = std::span(sum).first(std::min(kSumBlockBytes, out.size() - done));
    for (std::size_t i = 0; i < terms.size(); ++i) blocks[i].bytes = terms[i].bytes.subspan(done, block.size());
    multiply(block, blocks);
    std::ranges::copy(block, out.subspan(done).begin());
  }
}

}  // namespace

void combine_into(std::span<std::byte> out, std::span<const Term> terms) {
  if (std::ranges::all_of(terms, [](const Term& term) { return term.coefficient == 1; })) {
    std::vector<std::span<const std::byte>> inputs;
    for (const Term& term : terms) inputs.push_back(term.bytes);
    xor_into(out, inputs);
    return;
  }
  std::vector<Term> longest_first(terms.begin(), terms.end());
  std::ranges::stable_sort(longest_first, std::ranges::greater{}, [](const Term& term) { return term.bytes.size(); });
  if (longest_first.front().bytes.size() > out.size()) {
    throw Error(ErrorCode::invalid_argument, "a term of a sum is longer than its result; use a longer result");
  }
  // Each part reaches from one term's end to the next longer one's, so that its terms have equal lengths.
  std::vector<Term> parts;
  std::size_t begin = 0;
  while (begin < out.size()) {
    while (!longest_first.empty() && longest_first.back().bytes.size() <= begin) longest_first.pop_back();
    const std::size_t end = longest_first.empty() ? out.size() : longest_first.back().bytes.size();
    const auto part = out.subspan(begin, end - begin);
    parts = longest_first;
    for (Term& term : parts) term.bytes = term.bytes.subspan(begin, part.size());
    if (parts.empty()) std::ranges::fill(part, std::byte{0});
    else multiply_in_place(part, parts);
    begin = end;
  }
}

ErasureCode::ErasureCode(std::uint32_t data_count, std::uint32_t parity_count)
    : data_count_(data_count), parity_count_(parity_count) {
  if (data_count == 0 || parity_count == 0 || data_count + parity_count > 256) {
    throw Error(ErrorCode::invalid_argument, "a Reed-Solomon code needs data and parity, and at most 256 symbols");
  }
  std::vector<std::uint8_t> matrix(std::size_t{data_count + parity_count} * data_count, 1);
  if (parity_count > 1) {
    gf_gen_cauchy1_matrix(matrix.data(), static_cast<int>(data_count + parity_count), static_cast<int>(data_count));
  }
  parity_rows_.assign(matrix.end() - static_cast<std::ptrdiff_t>(std::size_t{parity_count} * data_count), matrix.end());
}

std::uint8_t ErasureCode::coefficient(std::uint32_t parity, std::uint32_t data) const {
  return parity_rows_.at(std::size_t{parity} * data_count_ + data);
}

std::vector<ErasureCode::WeightedSymbol> ErasureCode::solve_for(std::uint32_t wanted,
                                                                const std::vector<bool>& present) const {
  std::vector<std::uint32_t> lost;
  std::vector<std::uint32_t> used;  // indexes of parity symbols
  for (std::uint32_t symbol = 0; symbol < data_count_; ++symbol) {
    if (!present.at(symbol)) lost.push_back(symbol);
  }
  for (std::uint32_t parity = 0; parity < parity_count_ && used.size() < lost.size(); ++parity) {
    if (present.at(data_count_ + parity)) used.push_back(parity);
  }
  if (used.size() < lost.size()) {
    throw Error(ErrorCode::unrecoverable, "too many members of a redundancy set are lost to rebuild its containers");
  }
  // This matrix times the lost data is the used parity symbols minus the share of the surviving data in them.
  const std::size_t unknown = lost.size();
  std::vector<std::uint8_t> matrix(unknown * unknown);
  std::vector<std::uint8_t> inverse(unknown * unknown);
  for (std::size_t i = 0; i < unknown; ++i) {
    for (std::size_t j = 0; j < unknown; ++j) matrix[i * unknown + j] = coefficient(used[i], lost[j]);
  }
  if (unknown != 0 && gf_invert_matrix(matrix.data(), inverse.data(), static_cast<int>(unknown)) != 0) {
    throw Error(ErrorCode::unrecoverable, "a Reed-Solomon matrix has no inverse; please report this");
  }
  // Coefficients of the lost data symbols in the wanted symbol, and from them those of the used parity symbols.
  std::vector<std::uint8_t> of_used(unknown, 0);
  const auto of_data = [&](std::uint32_t symbol) -> std::uint8_t {
    if (wanted < data_count_) return wanted == symbol ? 1 : 0;
    return coefficient(wanted - data_count_, symbol);
  };
  for (std::size_t j = 0; j < unknown; ++j) {
    for (std::size_t i = 0; i < unknown; ++i) of_used[i] ^= gf_mul(of_data(lost[j]), inverse[j * unknown + i]);
  }
  std::vector<WeightedSymbol> parts;
  for (std::uint32_t symbol = 0; symbol < data_count_; ++symbol) {
    if (!present[symbol]) continue;
    std::uint8_t sum = of_data(symbol);
    for (std::size_t i = 0; i < unknown; ++i) sum ^= gf_mul(of_used[i], coefficient(used[i], symbol));
    if (sum != 0) parts.push_back({symbol, sum});
  }
  for (std::size_t i = 0; i < unknown; ++i) {
    if (of_used[i] != 0) parts.push_back({data_count_ + used[i], of_used[i]});
  }
  return parts;
}

}  // namespace kedge::codec

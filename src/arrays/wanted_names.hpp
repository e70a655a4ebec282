// Which names a load is about, as far as all processes know them, and in how many batches it goes through them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "arrays/name_bits.hpp"
#include "arrays/wants.hpp"
#include "comm/group.hpp"

namespace kedge::arrays {

/// The names that any process wants, for each way to look them up: offers of others are told to nobody.
struct WantedNames {
  std::array<NameBits, static_cast<std::size_t>(kLastLookUp) + 1> bits{};
  [[nodiscard]] NameBits& of(LookUp look_up) noexcept { return bits[static_cast<std::size_t>(look_up)]; }
  [[nodiscard]] const NameBits& of(LookUp look_up) const noexcept { return bits[static_cast<std::size_t>(look_up)]; }
};
/// COLLECTIVE, one all-reduce.
[[nodiscard]] WantedNames gather_wanted_names(const comm::Group& group, std::span<const Want> wants);

/// Names are planned and loaded in batches where homes would have to know too much at once. A name is in one batch.
struct Batch {
  std::uint64_t number = 0;
  std::uint64_t count = 1;
  [[nodiscard]] bool has(std::string_view name) const noexcept;
};
/// How many offers a home may have to know of at once; each takes a few hundred bytes until it is planned.
inline constexpr std::uint64_t kRowsPerBatch = std::uint64_t{1} << 18U;
/// COLLECTIVE, two all-reduces: how many batches there must be.
[[nodiscard]] std::uint64_t count_batches(const comm::Group& group, const WantedNames& names,
                                          std::span<const Offer> offers, std::uint64_t rows_per_batch = kRowsPerBatch);

}  // namespace kedge::arrays

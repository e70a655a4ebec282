#include "arrays/wanted_names.hpp"

#include <algorithm>
#include <tuple>

#include "base/hash.hpp"

namespace kedge::arrays {
bool Batch::has(std::string_view name) const noexcept { return fnv1a(name) / 512 % count == number; }

WantedNames gather_wanted_names(const comm::Group& group, std::span<const Want> wants) {
  WantedNames names;
  for (const Want& want : wants) add_name(names.of(look_up_of(want)), want.name);
  constexpr std::size_t kWords = std::tuple_size_v<NameBits>;
  std::array<std::uint64_t, kWords * std::tuple_size_v<decltype(names.bits)>> words{};
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = names.bits[i / kWords][i % kWords];
  words = group.bit_or(words);
  for (std::size_t i = 0; i < words.size(); ++i) names.bits[i / kWords][i % kWords] = words[i];
  return names;
}

std::uint64_t count_batches(const comm::Group& group, const WantedNames& names, std::span<const Offer> offers,
                            std::uint64_t rows_per_batch) {
  std::uint64_t wanted = 0;
  for (const Offer& offer : offers) {
    for (const NameBits& bits : names.bits) {
      if (may_have(bits, offer.name)) ++wanted;
    }
  }
  const std::uint64_t at_a_home = group.sum(wanted) / group.world_size();
  return std::max(at_a_home, group.max(wanted)) / rows_per_batch + 1;
}

}  // namespace kedge::arrays

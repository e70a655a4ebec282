// A persistent commit as rank 0 tells the others of it.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "persist/tags.hpp"

namespace kedge::engine {

/// From rank 0 to all, never stored. Texts that are too long are cut.
struct ToldTag {
  std::uint64_t generation = 0;
  Id128 commit_id;
  Id128 parent_commit_id;
  std::uint64_t incarnation = 0;
  std::int64_t time_ns = 0;
  std::uint64_t total_bytes = 0;
  std::uint32_t world_size = 0;
  std::array<char, 132> tag{};
  std::array<char, 256> directory{};
  std::array<char, 384> problem{};  ///< why it cannot be used; empty if its manifest is good

  [[nodiscard]] bool usable() const noexcept { return problem[0] == '\0'; }
};

template <std::size_t size>
void set_text(std::array<char, size>& characters, std::string_view text) {
  std::copy_n(text.begin(), std::min(text.size(), size - 1), characters.begin());
}

[[nodiscard]] inline ToldTag tell(const persist::TagEntry& entry, std::string_view problem) {
  ToldTag told;
  told.generation = entry.generation;
  told.commit_id = entry.commit_id;
  told.parent_commit_id = entry.parent_commit_id;
  told.incarnation = entry.incarnation;
  told.time_ns = entry.time_ns;
  told.total_bytes = entry.total_bytes;
  told.world_size = entry.world_size;
  set_text(told.tag, entry.tag);
  set_text(told.directory, entry.directory);
  set_text(told.problem, problem);
  return told;
}

}  // namespace kedge::engine

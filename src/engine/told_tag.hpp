// A persistent commit as rank 0 tells the others of it.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "commits/commit_record.hpp"
#include "persist/tags.hpp"

namespace kedge::engine {

/// From rank 0 to all, never stored. Texts that are too long are cut.
struct ToldTag {
  commits::CommitRecord commit;
  std::uint64_t total_bytes = 0;
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
  told.commit = commits::to_record(entry.commit);
  told.total_bytes = entry.total_bytes;
  set_text(told.directory, entry.directory);
  set_text(told.problem, problem);
  return told;
}

}  // namespace kedge::engine

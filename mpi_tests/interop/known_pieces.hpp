// What write_manifest and commit_through_engine save and read_manifest.py knows: arrays of every dtype in uneven blocks
// over 8 ranks, regions of each rank's own, replicated ones, empty ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "format/container_writer.hpp"
#include "kedge/attributes.hpp"

namespace kedge::testing {

inline constexpr std::uint32_t kKnownRanks = 8;
inline constexpr const char* kKnownTag = "step-000042";

/// One region of one rank. Every element of a global array says which one it is.
struct Piece {
  format::RegionSpec spec;
  std::uint32_t rank = 0;
};

[[nodiscard]] std::vector<Piece> known_pieces();
[[nodiscard]] std::vector<std::byte> bytes_of(const format::RegionSpec& spec);
[[nodiscard]] Attributes known_attributes();

}  // namespace kedge::testing

// Who reads which block of a stored region, so that each block that anybody wants is read and checked once, by one
// process, which passes on what it does not want itself. Pure.
//
// A region in a node's store is read by its steward. On the prefix any process can read, so a block goes to one of
// those that want at least half as much of it as the one that wants most; among these, to the one that this steward
// gave least so far. Slabs are thus read by those who want them and send nothing, and pencils, of which every process
// wants a little of each block, are read by all alike.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "arrays/pattern.hpp"

namespace kedge::arrays {

/// A choice of one reader after the other, by one steward.
class ReaderChoice {
 public:
  /// `seed` decides between equals: another one for each steward.
  explicit ReaderChoice(std::uint64_t seed) : random_(seed) {}
  /// How many bytes of a block a process wants.
  struct Need {
    int process = 0;
    std::uint64_t bytes = 0;
  };
  /// One of the processes, which must be at least one, for a block of `block_bytes`.
  [[nodiscard]] int choose(std::span<const Need> needs, std::uint64_t block_bytes);

 private:
  std::uint64_t random_;
  std::unordered_map<int, std::uint64_t> given_bytes_;
};

/// Part of a stored region that a process wants.
struct WantedPart {
  int process = 0;
  Pattern pattern;  ///< of which the stored offsets count
};

/// The readers of a region.
struct BlockReaders {
  struct Block {
    std::uint64_t number = 0;
    int reader = 0;
  };
  std::vector<Block> blocks;  ///< that are touched, in order
  /// Of each part, those who read some of it, sorted.
  std::vector<std::vector<int>> readers_of_part;
};

/// For a region of this size, cut into the blocks of its checksums. `steward` reads them all if it must.
[[nodiscard]] BlockReaders choose_readers(std::uint64_t size_bytes, std::span<const WantedPart> parts, int steward,
                                          bool steward_reads, ReaderChoice& choice);

}  // namespace kedge::arrays

// Loads what each process wants of a commit that another number of ranks saved. Made of a read plan and rounds of
// messages; reading containers and writing to the application's memory are the caller's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "arrays/read_plan.hpp"
#include "comm/group.hpp"

namespace kedge::arrays {

/// A block of a stored region that this process reads: 4 MiB of it, or what is left.
struct BlockToRead {
  const ReadOrder& region;
  std::uint64_t offset = 0;  ///< in the region
  std::uint64_t size_bytes = 0;
};

/// Bytes for a want of this process.
struct Delivery {
  std::uint32_t want = 0;
  const Pattern& pattern;
  PackedRange range;
  std::span<const std::byte> bytes;
  /// Where in the stored region `bytes` begin, of which the range is a part; nothing: they are the range, packed.
  std::optional<std::uint64_t> stored_offset;
};
/// Copies them into the array in host memory in which the want is.
void copy_to_memory(const Delivery& delivery, std::byte* array);

struct LoadInput {
  std::span<const Want> wants;
  std::span<const Offer> offers;    ///< whose steward this process is
  std::uint32_t logical_ranks = 0;  ///< that saved the commit; the same on all processes
  std::uint64_t buffer_bytes = 0;   ///< for messages and blocks of this process, beside one of 4 MiB
  std::uint64_t rows_per_batch = kRowsPerBatch;
  /// Reads a block into memory of its size; the bytes are right, or Error{corrupt} is thrown. Does not communicate.
  std::function<void(const BlockToRead& block, std::span<std::byte> to)> read;
  /// Does not communicate.
  std::function<void(const Delivery& delivery)> deliver;
  /// Host memory of the array in which a want is; null where only deliver() reaches it.
  std::function<std::byte*(std::uint32_t want)> memory;
};

/// What one process did.
struct LoadCounts {
  std::uint64_t blocks_read = 0;
  std::uint64_t bytes_read = 0;
  std::uint64_t bytes_sent = 0;        ///< to other processes, without heads
  std::uint64_t rounds = 0;            ///< in which all took part
  std::uint64_t buffer_bytes_max = 0;  ///< the most that was in messages and blocks at once
};

/// COLLECTIVE. Each block of a container that anybody wants is read once, by one process. Throws the same Error on all
/// processes: what make_read_plan throws, or what any process failed with; then the memory of all wants is undefined,
/// but for bytes that could not be read, which are zeros where they were delivered. Where homes would have to know very
/// many offers at once, names are planned and loaded in batches, and those of earlier batches are loaded when a later
/// one fails.
LoadCounts load_all(const comm::Group& group, const LoadInput& input);

}  // namespace kedge::arrays

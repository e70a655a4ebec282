// Moves one commit from the node-local stores to the prefix: all of it, or nothing that counts.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fs/file_system.hpp"
#include "kedge/communicator.hpp"
#include "kedge/error.hpp"
#include "persist/prefix.hpp"
#include "store/store_file.hpp"

namespace kedge::persist {

/// What this rank brings along.
struct FlushJob {
  TagEntry entry;                    ///< (same)
  std::string prefix;                ///< (same) canonical path
  std::uint32_t mode = 0755;         ///< (same) of directories
  LogicalRank logical_rank;          ///< whose container this rank copies
  store::StoreFile* file = nullptr;  ///< it, pinned and intact
  std::uint32_t crc = 0;             ///< that its bytes must have
  std::vector<std::byte> manifest;   ///< rank 0: the manifest's bytes
  std::chrono::duration<double> patience{300};
};

struct Flushed {
  std::optional<Failure> failure;  ///< the same on every rank; busy: a later start of the run has begun
  std::string left_out;            ///< rank 0: conveniences that failed after the commit, in words
};

/// COLLECTIVE. `prefix` is rank 0's, null elsewhere. Copies each container under its final name, comparing its checksum
/// on the way, and syncs it; when all ranks have, rank 0 writes the manifest and renames it, which is the commit. After
/// a failure the directory is removed again, as far as that is possible; what is left the next sweep removes. Throws
/// Error{timeout} only.
[[nodiscard]] Flushed flush(Communicator& communicator, fs::FileSystem& file_system, Prefix* prefix,
                            const FlushJob& job);

}  // namespace kedge::persist

// The bytes of a manifest's head and of the rows of its shard table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "format/manifest.hpp"
#include "format/superblock.hpp"

namespace kedge::format {

/// Throws Error{invalid_argument} if tag, run or extents do not fit.
[[nodiscard]] SuperblockBytes encode(const ManifestHead& head);

/// The reverse, with every field checked; for ManifestReader, see there.
[[nodiscard]] ManifestHead decode_manifest_head(std::span<const std::byte> bytes, std::string_view path);

/// Nothing if a shard's file may be called this: a path of 1 to 32 bytes downwards from the manifest's directory.
[[nodiscard]] std::optional<std::string> shard_file_problem(std::string_view file);

/// Whose row it is, and in which commit's manifest. A row's checksum covers this too: a CRC over bytes that each end
/// with their own CRC does not depend on them, so the extent's would not tell exchanged rows from the right ones.
struct RowIdentity {
  Id128 commit_id;
  LogicalRank logical_rank;
};

/// CRC32C of commit id, logical rank (4 bytes) and the row's first 60 bytes.
[[nodiscard]] std::uint32_t row_crc(std::span<const std::byte> bytes, const RowIdentity& place);

/// Into kShardRowBytes at `bytes`. Throws Error{invalid_argument} if the file's name does not fit.
void encode_row(const ShardRow& row, const RowIdentity& place, std::span<std::byte> bytes);

/// The reverse. Throws Error{corrupt}.
[[nodiscard]] ShardRow decode_row(std::span<const std::byte> bytes, const RowIdentity& place, std::string_view path);

}  // namespace kedge::format

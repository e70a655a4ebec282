// Encodes a manifest's head and the rows of its shard table.
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
[[nodiscard]] SuperblockBytes encode_manifest_head(const ManifestHead& head);

/// Parses a head and checks every field; throws as ManifestReader's constructor does.
[[nodiscard]] ManifestHead decode_manifest_head(std::span<const std::byte> bytes, std::string_view path);

/// Returns the problem unless it is a relative path of 1 to 32 bytes that stays below the manifest's directory.
[[nodiscard]] std::optional<std::string> check_shard_file(std::string_view file);

/// The rank and commit of a row. A row's checksum covers them too. The extent's checksum would not detect exchanged
/// rows: a CRC over blocks that each end with their own CRC does not depend on their content.
struct RowIdentity {
  Id128 commit_id;
  LogicalRank logical_rank;
};

/// CRC32C of commit id, logical rank (4 bytes) and the row's first 60 bytes.
[[nodiscard]] std::uint32_t row_crc(std::span<const std::byte> bytes, const RowIdentity& identity);

/// Writes kShardRowBytes to `bytes`. Throws Error{invalid_argument} if the file's name does not fit.
void encode_row(const ShardRow& row, const RowIdentity& identity, std::span<std::byte> bytes);

/// Parses a row. Throws Error{corrupt}.
[[nodiscard]] ShardRow decode_row(std::span<const std::byte> bytes, const RowIdentity& identity, std::string_view path);

}  // namespace kedge::format

#include "format/manifest_rows.hpp"

#include <algorithm>
#include <cstring>

#include "base/text.hpp"
#include "checksum/crc32c.hpp"
#include "format/fields.hpp"
#include "format/region_spec.hpp"

namespace kedge::format {

std::optional<std::string> check_shard_file(std::string_view file) {
  const auto because = [&](std::string_view why) {
    return kedge::compose("invalid container file name '{}': {}", printable_name(file), why);
  };
  if (file.empty() || file.size() > kShardFileBytesMax) {
    return because(kedge::compose("it must have 1 to {} bytes", kShardFileBytesMax));
  }
  // Kedge writes and opens only names of ASCII without control characters.
  if (std::ranges::any_of(file, [](char letter) { return letter < ' ' || letter > '~'; })) {
    return because("it has non-ASCII or control characters");
  }
  for (std::string_view rest = file;; rest.remove_prefix(rest.find('/') + 1)) {
    const std::string_view part = rest.substr(0, rest.find('/'));
    if (part.empty() || part == "." || part == "..")
      return because("it does not lead to a file below the manifest's directory");
    if (part.size() == rest.size()) return std::nullopt;
  }
}

std::uint32_t row_crc(std::span<const std::byte> bytes, const RowIdentity& identity) {
  std::uint32_t crc = crc32c(std::as_bytes(std::span(identity.commit_id.bytes)));
  crc = crc32c(std::as_bytes(std::span(&identity.logical_rank.value, 1)), crc);
  return crc32c(bytes.first(row_at::kRowCrc), crc);
}

void encode_row(const ShardRow& row, const RowIdentity& identity, std::span<std::byte> bytes) {
  if (const auto problem = check_shard_file(row.file)) throw Error(ErrorCode::invalid_argument, *problem);
  std::memcpy(bytes.data() + row_at::kFile, row.file.data(), row.file.size());
  put_field(bytes, row_at::kSizeBytes, row.size_bytes);
  put_field(bytes, row_at::kIndexOffset, row.index_offset);
  put_field(bytes, row_at::kIndexSize, row.index_size);
  put_field(bytes, row_at::kIndexCrc, row.index_crc);
  put_field(bytes, row_at::kCrc, row.crc);
  put_field(bytes, row_at::kRowCrc, row_crc(bytes, identity));
}

ShardRow decode_row(std::span<const std::byte> bytes, const RowIdentity& identity, std::string_view path) {
  const auto refuse_row = [&](std::string_view why) {
    throw_corrupt(path, kedge::compose("the manifest's row of rank {} {}; the manifest is damaged",
                                       identity.logical_rank.value, why));
  };
  if (row_crc(bytes, identity) != get_field<std::uint32_t>(bytes, row_at::kRowCrc)) {
    refuse_row("has a wrong checksum");
  }
  ShardRow row;
  const auto name = bytes.subspan(row_at::kFile, kShardFileBytesMax);
  const auto end = std::ranges::find(name, std::byte{0});
  for (auto letter = name.begin(); letter != end; ++letter) row.file += static_cast<char>(*letter);
  row.size_bytes = get_field<std::uint64_t>(bytes, row_at::kSizeBytes);
  row.index_offset = get_field<std::uint64_t>(bytes, row_at::kIndexOffset);
  row.index_size = get_field<std::uint32_t>(bytes, row_at::kIndexSize);
  row.index_crc = get_field<std::uint32_t>(bytes, row_at::kIndexCrc);
  row.crc = get_field<std::uint32_t>(bytes, row_at::kCrc);
  if (!std::all_of(end, name.end(), [](std::byte byte) { return byte == std::byte{0}; })) {
    refuse_row("has an invalid file name");
  }
  if (const auto problem = check_shard_file(row.file)) refuse_row("is invalid: " + *problem);
  if (row.size_bytes < kSuperblockBytes || row.index_offset < kSuperblockBytes || row.index_offset > row.size_bytes ||
      row.index_size > row.size_bytes - row.index_offset) {
    refuse_row("places the index outside the container");
  }
  return row;
}

}  // namespace kedge::format

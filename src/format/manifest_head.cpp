#include <algorithm>
#include <cstring>

#include "base/text.hpp"
#include "checksum/crc32c.hpp"
#include "commits/head_check.hpp"
#include "format/attributes.hpp"
#include "format/fields.hpp"
#include "format/manifest_rows.hpp"

namespace kedge::format {
namespace {

static_assert(sizeof(Id128) == 16 && sizeof(ExtentKind) == 4);

void check_manifest_header(std::span<const std::byte> bytes, std::string_view path) {
  if (bytes.size() < kSuperblockBytes) throw_corrupt(path, "not a Kedge manifest: shorter than 4096 bytes");
  if (is_unsealed(bytes.first(kSuperblockBytes)))
    throw_corrupt(path, "not a sealed Kedge manifest: it was never finished");
  if (std::memcmp(bytes.data(), kManifestMagic.data(), kManifestMagic.size()) != 0) {
    throw_corrupt(path, "not a Kedge manifest: bad magic number");
  }
  if (crc32c(bytes.first(manifest_at::kCrc)) != get_field<std::uint32_t>(bytes, manifest_at::kCrc)) {
    throw_corrupt(path, "the checksum of the manifest's head is wrong; the manifest is damaged");
  }
  const auto version = get_field<std::uint32_t>(bytes, manifest_at::kVersion);
  if (auto problem = check_version("the manifest's format version", version, kManifestVersion)) {
    throw Error(Failure{ErrorCode::mismatch, std::move(*problem), -1, std::string(path), 0});
  }
  if (get_field<std::uint32_t>(bytes, manifest_at::kSealed) != 1) {
    throw_corrupt(path, "not a sealed Kedge manifest: the sealed flag is invalid");
  }
}

[[noreturn]] void throw_corrupt_manifest(std::string_view path, std::string_view what) {
  throw_corrupt(path, kedge::compose("the manifest's head is inconsistent: {}; the manifest is damaged", what));
}

// A text at its offset, followed by zeros.
std::string text_at(std::span<const std::byte> bytes, std::size_t size_at, std::size_t at, std::size_t room,
                    std::string_view path) {
  const auto size = get_field<std::uint32_t>(bytes, size_at);
  if (size > room || !is_unsealed(bytes.subspan(at + size, room - size))) {
    throw_corrupt_manifest(path, "tag or run is too long for its field");
  }
  std::string text;
  for (const std::byte letter : bytes.subspan(at, size)) text += static_cast<char>(letter);
  return text;
}

// Returns the error if the extents leave holes or do not end with the file.
std::optional<std::string> check_extent_table(const ManifestHead& head) {
  std::uint64_t end = kSuperblockBytes;
  std::size_t shards = 0;
  std::size_t attributes = 0;
  for (const Extent& extent : head.extents) {
    if (extent.offset != end || extent.length == 0 || extent.length > head.file_size - end) {
      return "its extents do not cover the file";
    }
    end += extent.length;
    if (extent.kind == ExtentKind::shards) {
      ++shards;
      if (extent.offset != head.table_offset ||
          extent.length != head.commit.world_size * std::uint64_t{kShardRowBytes}) {
        return "the shard table is not where the extents say";
      }
    } else if (extent.kind == ExtentKind::attributes) {
      ++attributes;
      if (extent.offset != head.attributes_offset || head.attributes_size > extent.length) {
        return "the attributes are not where the extents say";
      }
    } else if (extent.kind != ExtentKind::metadata) {
      return kedge::compose("unknown extent kind {}", static_cast<std::uint32_t>(extent.kind));
    }
  }
  if (end != head.file_size) return "its extents do not cover the file";
  if (shards != 1) return "it does not have exactly one shard table";
  if (attributes != (head.attributes_offset == 0 ? 0 : 1)) return "the attributes are not where the extents say";
  return std::nullopt;
}

std::optional<std::string> check_consistency(const ManifestHead& head) {
  if (auto what = commits::check_head(head.commit)) return what;
  if (head.file_size < kSuperblockBytes || head.file_size > kFileBytesMax) {
    return kedge::compose("the file size {} is impossible", head.file_size);
  }
  const bool none = head.attributes_offset == 0;
  if (head.attributes_size > kAttributesBytesMax || none != (head.attributes_size == 0)) {
    return kedge::compose("the attributes' size {} is impossible", head.attributes_size);
  }
  return check_extent_table(head);
}

// Unused bytes must be zero, which lets a later version use them.
void check_unused_manifest_bytes(std::span<const std::byte> bytes, std::size_t extents, std::string_view path) {
  const auto unused = [&](std::size_t begin, std::size_t end) {
    if (!is_unsealed(bytes.subspan(begin, end - begin))) throw_corrupt_manifest(path, "unused bytes are not zero");
  };
  unused(manifest_at::kFieldsEnd, manifest_at::kTableSize);
  unused(manifest_at::kTableSize + 4, manifest_at::kTable);
  unused(manifest_at::kTable + extents * kTableEntryBytes, manifest_at::kCrc);
}

void require_fit(bool fits, std::string_view what, std::size_t max) {
  if (!fits)
    throw Error(ErrorCode::invalid_argument, kedge::compose("{} does not fit into a manifest (maximum {})", what, max));
}

}  // namespace

SuperblockBytes encode_manifest_head(const ManifestHead& head) {
  require_fit(head.commit.tag.size() <= kTagBytesMax, "tag '" + head.commit.tag + "'", kTagBytesMax);
  require_fit(head.run.size() <= kRunNameBytesMax, "run '" + head.run + "'", kRunNameBytesMax);
  require_fit(head.extents.size() <= kTableEntriesMax, "the number of extents", kTableEntriesMax);
  SuperblockBytes bytes{};
  put_field(bytes, manifest_at::kMagic, kManifestMagic);
  put_field(bytes, manifest_at::kVersion, kManifestVersion);
  put_field(bytes, manifest_at::kSealed, std::uint32_t{1});
  put_field(bytes, manifest_at::kRunId, head.commit.run_id.bytes);
  put_field(bytes, manifest_at::kCommitId, head.commit.id.bytes);
  put_field(bytes, manifest_at::kParentCommitId, head.commit.parent_id.bytes);
  put_field(bytes, manifest_at::kGeneration, head.commit.generation);
  put_field(bytes, manifest_at::kIncarnation, head.commit.incarnation);
  put_field(bytes, manifest_at::kWorldSize, head.commit.world_size);
  put_field(bytes, manifest_at::kHasView, std::uint32_t{head.has_view ? 1U : 0U});
  put_field(bytes, manifest_at::kTimeNs, head.commit.time_ns);
  put_field(bytes, manifest_at::kFileSize, head.file_size);
  put_field(bytes, manifest_at::kTotalBytes, head.total_bytes);
  put_field(bytes, manifest_at::kShardsOffset, head.table_offset);
  put_field(bytes, manifest_at::kAttributesOffset, head.attributes_offset);
  put_field(bytes, manifest_at::kAttributesSize, head.attributes_size);
  put_field(bytes, manifest_at::kTagSize, static_cast<std::uint32_t>(head.commit.tag.size()));
  put_field(bytes, manifest_at::kRunSize, static_cast<std::uint32_t>(head.run.size()));
  std::memcpy(bytes.data() + manifest_at::kTag, head.commit.tag.data(), head.commit.tag.size());
  std::memcpy(bytes.data() + manifest_at::kRun, head.run.data(), head.run.size());
  put_field(bytes, manifest_at::kIsOutput, std::uint32_t{head.commit.is_output ? 1U : 0U});
  put_extents(bytes, head.extents);
  put_field(bytes, manifest_at::kCrc, crc32c(std::span(bytes).first(manifest_at::kCrc)));
  return bytes;
}

ManifestHead decode_manifest_head(std::span<const std::byte> bytes, std::string_view path) {
  check_manifest_header(bytes, path);
  bytes = bytes.first(kSuperblockBytes);
  ManifestHead head;
  head.commit.run_id.bytes = get_field<std::array<std::uint8_t, 16>>(bytes, manifest_at::kRunId);
  head.commit.id.bytes = get_field<std::array<std::uint8_t, 16>>(bytes, manifest_at::kCommitId);
  head.commit.parent_id.bytes = get_field<std::array<std::uint8_t, 16>>(bytes, manifest_at::kParentCommitId);
  head.commit.generation = get_field<std::uint64_t>(bytes, manifest_at::kGeneration);
  head.commit.incarnation = get_field<std::uint64_t>(bytes, manifest_at::kIncarnation);
  head.commit.world_size = get_field<std::uint32_t>(bytes, manifest_at::kWorldSize);
  const auto has_view = get_field<std::uint32_t>(bytes, manifest_at::kHasView);
  if (has_view > 1) throw_corrupt_manifest(path, "the view flag is neither 0 nor 1");
  head.has_view = has_view == 1;
  head.commit.time_ns = get_field<std::int64_t>(bytes, manifest_at::kTimeNs);
  head.file_size = get_field<std::uint64_t>(bytes, manifest_at::kFileSize);
  head.total_bytes = get_field<std::uint64_t>(bytes, manifest_at::kTotalBytes);
  head.table_offset = get_field<std::uint64_t>(bytes, manifest_at::kShardsOffset);
  head.attributes_offset = get_field<std::uint64_t>(bytes, manifest_at::kAttributesOffset);
  head.attributes_size = get_field<std::uint64_t>(bytes, manifest_at::kAttributesSize);
  head.commit.tag = text_at(bytes, manifest_at::kTagSize, manifest_at::kTag, kTagBytesMax, path);
  head.run = text_at(bytes, manifest_at::kRunSize, manifest_at::kRun, kRunNameBytesMax, path);

  const auto is_output = get_field<std::uint32_t>(bytes, manifest_at::kIsOutput);
  if (is_output > 1) throw_corrupt_manifest(path, "the output flag is neither 0 nor 1");
  head.commit.is_output = is_output == 1;

  const auto extents = get_field<std::uint32_t>(bytes, manifest_at::kTableSize);
  if (extents > kTableEntriesMax) throw_corrupt_manifest(path, "too many extents");
  head.extents = get_extents(bytes, extents);
  if (const auto what = check_consistency(head)) throw_corrupt_manifest(path, *what);
  check_unused_manifest_bytes(bytes, extents, path);
  return head;
}

}  // namespace kedge::format

#include "format/container_reader.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "checksum/crc32c.hpp"
#include "format/fields.hpp"
#include "format/region_copy.hpp"
#include "fs/transfer.hpp"

namespace kedge::format {
namespace {

constexpr std::uint64_t kPieceBytes = std::uint64_t{64} << 20U;  // between two reports of progress

void report(const std::function<void(std::uint64_t)>& progress, std::uint64_t bytes) {
  if (progress) progress(bytes);
}

Index read_index(fs::ByteAccess& bytes, const Superblock& superblock, const std::string& path) {
  std::vector<std::byte> stored(superblock.index_size);
  if (bytes.read_with_crc(superblock.index_offset, stored, 0) != superblock.index_crc) {
    throw_corrupt(path, "the index's checksum is wrong; the container is damaged");
  }
  return decode_index(stored, superblock.extents, superblock.file_size, path);
}

}  // namespace

Superblock read_superblock(fs::ByteAccess& bytes, std::uint64_t file_size, const std::string& path) {
  if (file_size < kSuperblockBytes)
    throw_corrupt(path, kedge::compose("not a Kedge container: it has only {} bytes", file_size));
  SuperblockBytes stored{};
  bytes.read(0, stored);
  Superblock superblock = decode_superblock(stored, path);
  if (superblock.file_size != file_size) {
    throw_corrupt(path,
                  kedge::compose("the container was written with {} bytes and now has {}: {}", superblock.file_size,
                                 file_size, file_size < superblock.file_size ? "truncated" : "bytes were appended"));
  }
  return superblock;
}

ContainerReader::ContainerReader(fs::ByteAccess& bytes, std::uint64_t file_size, std::string path,
                                 unsigned copy_threads)
    : bytes_(bytes),
      path_(std::move(path)),
      copy_threads_(copy_threads),
      superblock_(read_superblock(bytes, file_size, path_)),
      index_(read_index(bytes, superblock_, path_)) {}

const StoredRegion* ContainerReader::find_region(std::string_view name) const noexcept {
  const std::ptrdiff_t position = index_.map.find_position(name);
  return position < 0 ? nullptr : &index_.map.regions[static_cast<std::size_t>(position)];
}

std::span<const std::uint32_t> ContainerReader::checksums(const StoredRegion& region) const noexcept {
  if (region.size_bytes == 0) return {};
  const bool large = region.size_bytes >= kLargeRegionBytes;
  return std::span(index_.checksums).subspan(region.first_checksum, large ? extent_of(region).checksum_count : 1);
}

void ContainerReader::require_size(const StoredRegion& region, std::uint64_t size_bytes) const {
  if (size_bytes == region.size_bytes) return;
  throw Error(Failure{ErrorCode::mismatch,
                      kedge::compose("region '{}' has {} bytes, but the memory to load it into has {}",
                                     region.spec.name, region.size_bytes, size_bytes),
                      -1, path_, 0});
}

void ContainerReader::read(const StoredRegion& region, std::span<std::byte> out) const {
  require_size(region, out.size());
  require_blocks_intact(region, 0, copy_region_out(bytes_, region.offset, out, copy_threads_));
}

void ContainerReader::read(const StoredRegion& region, device::Staging& staging, const device::Span& out) const {
  require_size(region, out.size_bytes);
  require_blocks_intact(region, 0, copy_region_out(bytes_, region.offset, staging, out, copy_threads_));
}

void ContainerReader::read(const StoredRegion& region, fs::ByteAccess& out) const {
  std::vector<std::byte> buffer(std::min(kBlockBytes, region.size_bytes));
  for (std::size_t block = 0; block * kBlockBytes < region.size_bytes; ++block) {
    const std::uint64_t begin = block * kBlockBytes;
    const auto piece = std::span(buffer).first(std::min(kBlockBytes, region.size_bytes - begin));
    std::uint32_t found = 0;
    // Copying large pieces would bypass the cache, from which the write reads them.
    fs::for_each_piece(piece.size(), fs::kCachedPieceBytes, [&](std::uint64_t at, std::uint64_t length) {
      found = bytes_.read_with_crc(region.offset + begin + at, piece.subspan(at, length), found);
    });
    require_blocks_intact(region, block, std::span(&found, 1));
    out.write(begin, piece);
  }
}

void ContainerReader::read_block(const StoredRegion& region, std::uint64_t block, std::span<std::byte> out) const {
  const std::uint32_t found = bytes_.read_with_crc(region.offset + block * kBlockBytes, out, 0);
  require_blocks_intact(region, block, std::span(&found, 1));
}

/// `found` holds the checksums of the blocks from `first` on, without padding.
void ContainerReader::require_blocks_intact(const StoredRegion& region, std::size_t first,
                                            std::span<const std::uint32_t> found) const {
  const auto stored = checksums(region);
  const bool large = region.size_bytes >= kLargeRegionBytes;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const std::size_t block = first + i;
    const std::uint32_t crc = large ? crc_with_padding(extent_of(region), region, block, found[i]) : found[i];
    if (crc != stored[block]) {
      const std::uint64_t begin = block * kBlockBytes;
      const std::uint64_t end = std::min<std::uint64_t>(begin + kBlockBytes, region.size_bytes);
      throw_corrupt(path_,
                    kedge::compose("region '{}' is damaged within bytes {} to {} of the file: its checksum is wrong",
                                   region.spec.name, region.offset + begin, region.offset + end - 1));
    }
  }
}

std::string ContainerReader::attributes() const {
  const StoredRegion* region = find_region(kAttributesName);
  if (region == nullptr) return {};
  std::string text(region->size_bytes, '\0');
  read(*region, std::as_writable_bytes(std::span(text)));
  return text;
}

std::uint32_t ContainerReader::file_crc() const {
  struct Piece {
    std::uint64_t offset = 0;
    std::uint64_t length = 0;
    std::uint32_t crc = 0;
  };
  std::vector<Piece> pieces;
  for (const Extent& extent : superblock_.extents) pieces.push_back({extent.offset, extent.length, extent.crc});
  for (const DataExtent& extent : index_.map.data_extents) {
    if (!extent.is_large) {
      pieces.push_back({extent.offset, extent.length, index_.checksums[extent.first_checksum]});
      continue;
    }
    for (std::uint64_t block = 0; block < extent.checksum_count; ++block) {
      const std::uint64_t begin = block * kBlockBytes;
      pieces.push_back({extent.offset + begin, std::min(kBlockBytes, extent.length - begin),
                        index_.checksums[extent.first_checksum + block]});
    }
  }
  std::ranges::sort(pieces, {}, &Piece::offset);
  std::uint32_t crc = crc32c(encode_superblock(superblock_));
  for (const Piece& piece : pieces) crc = crc32c_combine(crc, piece.crc, piece.length);
  return crc;
}

std::vector<Damage> ContainerReader::verify(const std::function<void(std::uint64_t)>& on_progress) const {
  std::vector<Damage> damages;
  verify_structure(damages, on_progress);
  for (const DataExtent& extent : index_.map.data_extents) verify_data(extent, damages, on_progress);
  return damages;
}

std::vector<Damage> ContainerReader::verify_unread(const WasRead& was_read) const {
  std::vector<Damage> damages;
  verify_structure(damages, {});
  for (const DataExtent& extent : index_.map.data_extents) {
    if (!was_extent_read(extent, was_read)) verify_data(extent, damages, {});
    else if (!is_padding_intact(bytes_, index_.map, extent))
      damages.push_back({"padding beside regions", extent.offset, extent.length});
  }
  return damages;
}

std::uint64_t ContainerReader::unread_bytes(const WasRead& was_read) const {
  std::uint64_t bytes = 0;
  for (const DataExtent& extent : index_.map.data_extents) {
    if (!was_extent_read(extent, was_read)) bytes += extent.length;
  }
  return bytes;
}

bool ContainerReader::was_extent_read(const DataExtent& extent, const WasRead& was_read) const {
  for (std::uint64_t i = 0; i < extent.region_count; ++i) {
    if (!was_read(region_at(extent.first_region + i))) return false;
  }
  return true;
}

// The constructor checked superblock and index, but the file may have changed since.
void ContainerReader::verify_structure(std::vector<Damage>& damages,
                                       const std::function<void(std::uint64_t)>& progress) const {
  const SuperblockBytes expected = encode_superblock(superblock_);
  if (bytes_.checksum(0, kSuperblockBytes, 0) != crc32c(expected)) {
    damages.push_back({"superblock", 0, kSuperblockBytes});
  }
  report(progress, kSuperblockBytes);
  for (const Extent& extent : superblock_.extents) {
    if (bytes_.checksum(extent.offset, extent.length, 0) != extent.crc) {
      damages.push_back({extent.kind == ExtentKind::index ? "index" : "HDF5 metadata", extent.offset, extent.length});
    }
    report(progress, extent.length);
  }
}

void ContainerReader::verify_data(const DataExtent& extent, std::vector<Damage>& damages,
                                  const std::function<void(std::uint64_t)>& progress) const {
  if (!extent.is_large) {
    if (bytes_.checksum(extent.offset, extent.length, 0) != index_.checksums[extent.first_checksum]) {
      verify_run(extent, damages);
    }
    report(progress, extent.length);
    return;
  }
  std::uint64_t unreported = 0;
  for (std::uint64_t block = 0; block < extent.checksum_count; ++block) {
    const std::uint64_t begin = block * kBlockBytes;
    const std::uint64_t length = std::min(kBlockBytes, extent.length - begin);
    if (bytes_.checksum(extent.offset + begin, length, 0) != index_.checksums[extent.first_checksum + block]) {
      damages.push_back(
          {kedge::compose("region '{}'", region_at(extent.first_region).spec.name), extent.offset + begin, length});
    }
    unreported += length;
    if (unreported >= kPieceBytes) report(progress, std::exchange(unreported, 0));
  }
  if (unreported != 0) report(progress, unreported);
}

// Reports which region of a damaged run of small regions is damaged, or the padding between them.
void ContainerReader::verify_run(const DataExtent& extent, std::vector<Damage>& damages) const {
  bool found = false;
  for (std::uint64_t i = 0; i < extent.region_count; ++i) {
    const StoredRegion& region = region_at(extent.first_region + i);
    if (bytes_.checksum(region.offset, region.size_bytes, 0) == index_.checksums[region.first_checksum]) continue;
    damages.push_back({kedge::compose("region '{}'", region.spec.name), region.offset, region.size_bytes});
    found = true;
  }
  if (!found) damages.push_back({"padding between regions", extent.offset, extent.length});
}

const StoredRegion& ContainerReader::region_at(std::uint64_t position) const noexcept {
  return index_.map.regions[index_.map.by_offset[position]];
}

const DataExtent& ContainerReader::extent_of(const StoredRegion& region) const noexcept {
  const auto& extents = index_.map.data_extents;
  const auto after =
      std::upper_bound(extents.begin(), extents.end(), region.offset,
                       [](std::uint64_t offset, const DataExtent& extent) { return offset < extent.offset; });
  return *std::prev(after);
}

}  // namespace kedge::format

#include "format/region_copy.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>

#include "base/invariant.hpp"
#include "base/run_on_threads.hpp"
#include "checksum/crc32c.hpp"
#include "fs/transfer.hpp"

namespace kedge::format {
namespace {

// Read size: small enough to be still in a cache when it is written, large enough for a disk.
constexpr std::uint64_t kStreamedBytes = std::uint64_t{1} << 20U;

using Visit = std::function<void(std::uint64_t offset, std::uint64_t length)>;

// Visits each stretch of the extent that belongs to no region.
void for_each_padding(const RegionMap& map, const DataExtent& extent, const Visit& visit) {
  std::uint64_t at = extent.offset;
  for (std::uint64_t i = 0; i < extent.region_count; ++i) {
    const StoredRegion& region = map.regions[map.by_offset[extent.first_region + i]];
    if (region.offset > at) visit(at, region.offset - at);
    at = region.offset + region.size_bytes;
  }
  const std::uint64_t end = extent.offset + extent.length;
  if (end > at) visit(at, end - at);
}

// Gives out blocks 0 to count - 1 to threads, until one of them fails.
class Blocks {
 public:
  explicit Blocks(std::uint64_t count) : count_(count) {}

  template <class Take>
  void take(Take&& take_block) {
    // Stops the other threads on any exception, also on types that are no std::exception.
    const struct EndsAll {
      Blocks& blocks;
      ~EndsAll() { blocks.next_ = blocks.count_; }
    } ends_all{*this};
    for (std::uint64_t block = next_++; block < count_; block = next_++) take_block(block);
  }

 private:
  std::uint64_t count_;
  std::atomic<std::uint64_t> next_{0};
};

/// Calls copy(begin, length) for each block, on up to `threads` threads; returns the results by block.
template <class Copy>
BlockChecksums copy_blocks(std::uint64_t size_bytes, unsigned threads, Copy&& copy) {
  BlockChecksums checksums((size_bytes + kBlockBytes - 1) / kBlockBytes);
  Blocks blocks(checksums.size());
  const auto work = [&] {
    blocks.take([&](std::uint64_t block) {
      const std::uint64_t begin = block * kBlockBytes;
      checksums[block] = copy(begin, std::min<std::uint64_t>(kBlockBytes, size_bytes - begin));
    });
  };
  // Starting a thread takes about 20 microseconds, copying a block about 300.
  run_on_threads(static_cast<unsigned>(std::min<std::uint64_t>(threads, checksums.size())), work);
  return checksums;
}

BlockChecksums checksums_of(fs::ByteAccess& file, std::uint64_t offset, std::uint64_t size_bytes, unsigned threads) {
  return copy_blocks(size_bytes, threads, [&](std::uint64_t begin, std::uint64_t length) {
    return file.checksum(offset + begin, length, 0);
  });
}

// Pieces from a device are whole blocks, except for the last one.
static_assert(device::StagingSize{}.buffer_bytes % kBlockBytes == 0);

void append(BlockChecksums& all, const BlockChecksums& more) { all.insert(all.end(), more.begin(), more.end()); }

}  // namespace

BlockChecksums copy_region_in(fs::ByteAccess& file, std::uint64_t offset, std::span<const std::byte> bytes,
                              unsigned threads) {
  return copy_blocks(bytes.size(), threads, [&](std::uint64_t begin, std::uint64_t length) {
    return file.write_with_crc(offset + begin, bytes.subspan(begin, length), 0);
  });
}

BlockChecksums copy_region_in(fs::ByteAccess& file, std::uint64_t offset, device::Staging& staging,
                              const device::Span& from, const DeviceTarget& reach, unsigned threads) {
  if (staging.can_access(from.location, reach.memory)) {
    const std::span<std::byte> memory = reach.memory.bytes;
    invariant(offset + from.size_bytes <= memory.size(), "a region lies within its file");
    return staging.read_into(
        from, memory.subspan(offset, from.size_bytes), kBlockBytes,
        [&](std::uint64_t begin, std::uint64_t length) { return checksums_of(file, offset + begin, length, threads); });
  }
  const auto through_buffers = [&](std::uint64_t begin, std::uint64_t length) {
    BlockChecksums checksums;
    staging.read({from.data + begin, length, from.location}, [&](std::uint64_t at, std::span<const std::byte> piece) {
      append(checksums, copy_region_in(file, offset + begin + at, piece, threads));
    });
    return checksums;
  };
  const device::DirectWrites::Transfer transfer{
      {from.data, from.size_bytes}, from.location, reach.file, offset, kBlockBytes, threads};
  device::DirectWrites& direct = staging.direct_writes();
  if (auto found = direct.write(transfer, through_buffers)) return *std::move(found);
  BlockChecksums checksums = through_buffers(0, from.size_bytes);
  direct.compare_checksums(transfer, checksums);
  return checksums;
}

BlockChecksums stream_region_in(fs::ByteAccess& file, std::uint64_t offset, fs::ByteAccess& from,
                                std::uint64_t size_bytes) {
  std::vector<std::byte> buffer(std::min<std::uint64_t>(kStreamedBytes, size_bytes));
  return copy_blocks(size_bytes, 1, [&](std::uint64_t begin, std::uint64_t length) {
    std::uint32_t crc = 0;
    fs::for_each_piece(length, kStreamedBytes, [&](std::uint64_t at, std::uint64_t piece_bytes) {
      const auto piece = std::span(buffer).first(piece_bytes);
      from.read(begin + at, piece);
      crc = file.write_with_crc(offset + begin + at, piece, crc);
    });
    return crc;
  });
}

BlockChecksums copy_region_out(fs::ByteAccess& file, std::uint64_t offset, std::span<std::byte> bytes,
                               unsigned threads) {
  return copy_blocks(bytes.size(), threads, [&](std::uint64_t begin, std::uint64_t length) {
    return file.read_with_crc(offset + begin, bytes.subspan(begin, length), 0);
  });
}

BlockChecksums copy_region_out(fs::ByteAccess& file, std::uint64_t offset, device::Staging& staging,
                               const device::Span& to, unsigned threads) {
  BlockChecksums checksums;
  staging.write(to, [&](std::uint64_t begin, std::span<std::byte> piece) {
    append(checksums, copy_region_out(file, offset + begin, piece, threads));
  });
  return checksums;
}

std::uint32_t crc_with_padding(const DataExtent& extent, const StoredRegion& region, std::uint64_t block,
                               std::uint32_t crc) noexcept {
  const std::uint64_t begin = block * kBlockBytes;
  const std::uint64_t end = std::min(begin + kBlockBytes, extent.length);
  return crc32c_zeros(end - std::clamp(region.size_bytes, begin, end), crc);
}

std::vector<std::uint32_t> extent_checksums(const RegionMap& map, std::span<const BlockChecksums* const> regions) {
  std::vector<std::uint32_t> all;
  all.reserve(map.checksum_count);
  for (const DataExtent& extent : map.data_extents) {
    if (extent.is_large) {
      const std::size_t i = map.by_offset[extent.first_region];
      const BlockChecksums& blocks = *regions[i];
      for (std::uint64_t block = 0; block < extent.checksum_count; ++block) {
        all.push_back(crc_with_padding(extent, map.regions[i], block, block < blocks.size() ? blocks[block] : 0));
      }
      continue;
    }
    const std::size_t whole = all.size();
    all.push_back(0);
    std::uint32_t crc = 0;
    std::uint64_t at = extent.offset;
    for (std::uint64_t k = 0; k < extent.region_count; ++k) {
      const std::size_t i = map.by_offset[extent.first_region + k];
      const StoredRegion& region = map.regions[i];
      const std::uint32_t own = regions[i]->front();
      crc = crc32c_combine(crc32c_zeros(region.offset - at, crc), own, region.size_bytes);
      all.push_back(own);
      at = region.offset + region.size_bytes;
    }
    all[whole] = crc32c_zeros(extent.offset + extent.length - at, crc);
  }
  return all;
}

void write_zeros(fs::ByteAccess& file, std::uint64_t offset, std::uint64_t length) {
  static constexpr std::array<std::byte, 65536> kZeros{};
  while (length != 0) {
    const auto piece = std::span(kZeros).first(std::min<std::uint64_t>(length, kZeros.size()));
    static_cast<void>(file.write_with_crc(offset, piece, 0));
    offset += piece.size();
    length -= piece.size();
  }
}

void write_padding(fs::ByteAccess& file, const RegionMap& map) {
  for (const DataExtent& extent : map.data_extents) {
    for_each_padding(map, extent,
                     [&](std::uint64_t offset, std::uint64_t length) { write_zeros(file, offset, length); });
  }
}

bool is_padding_intact(fs::ByteAccess& file, const RegionMap& map, const DataExtent& extent) {
  bool intact = true;
  for_each_padding(map, extent, [&](std::uint64_t offset, std::uint64_t length) {
    intact = intact && file.checksum(offset, length, 0) == crc32c_zeros(length, 0);
  });
  return intact;
}

}  // namespace kedge::format

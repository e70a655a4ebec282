// Regions that are streamed from and to files: the same container as from memory, a block at a time.
#include <gtest/gtest.h>

#include "unit/format/support.hpp"

namespace kedge::format::testing::streaming_test {
namespace {

/// Remembers the longest piece that was asked of it.
class Pieces final : public MemoryFile {
 public:
  using MemoryFile::MemoryFile;
  std::uint32_t write_with_crc(std::uint64_t offset, std::span<const std::byte> bytes, std::uint32_t crc) override {
    longest = std::max<std::uint64_t>(longest, bytes.size());
    return MemoryFile::write_with_crc(offset, bytes, crc);
  }
  std::uint32_t read_with_crc(std::uint64_t offset, std::span<std::byte> bytes, std::uint32_t crc) override {
    longest = std::max<std::uint64_t>(longest, bytes.size());
    return MemoryFile::read_with_crc(offset, bytes, crc);
  }
  std::uint64_t longest = 0;
};

std::vector<Sample> samples() {
  return {sample("empty", 0), sample("small", 1000), sample("large", kLargeRegionBytes),
          sample("blocks", 2 * kBlockBytes + 12345)};
}

TEST(FormatStreaming, TheContainerIsTheSameAsFromMemory) {
  MemoryTarget from_memory;
  write(from_memory, samples());
  MemoryTarget streamed;
  std::shared_ptr<const Layout> layout;
  for (int round = 0; round < 2; ++round) {  // without and with a prediction
    ContainerWriter writer(streamed, layout);
    for (const Sample& one : samples()) {
      Pieces source(one.bytes);
      writer.add(one.spec, source, one.bytes.size());
      EXPECT_LE(source.longest, kBlockBytes);
    }
    layout = writer.finish();
    writer.seal(identity());
    EXPECT_EQ(streamed.file.content, from_memory.file.content);
  }
}

TEST(FormatStreaming, ARegionIsReadABlockAtATime) {
  MemoryTarget target;
  write(target, samples());
  const ContainerReader reader(target.file, target.file.size(), "file");
  for (const Sample& one : samples()) {
    Pieces out(std::vector<std::byte>(one.bytes.size()));
    reader.read(*reader.find_region(one.spec.name), out);
    EXPECT_EQ(out.content, one.bytes);
    EXPECT_LE(out.longest, kBlockBytes);
  }
}

TEST(FormatStreaming, ADamagedBlockIsNotHandedOut) {
  MemoryTarget target;
  write(target, samples());
  const ContainerReader reader(target.file, target.file.size(), "file");
  const StoredRegion& region = *reader.find_region("blocks");
  target.file.content[region.offset + kBlockBytes + 7] ^= std::byte{1};
  Pieces out(std::vector<std::byte>(region.size_bytes));
  try {
    reader.read(region, out);
    FAIL() << "damage was not found";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::corrupt);
  }
  const std::vector<std::byte> second(out.content.begin() + kBlockBytes, out.content.begin() + 2 * kBlockBytes);
  EXPECT_EQ(second, std::vector<std::byte>(kBlockBytes)) << "the damaged block was written";
}

TEST(FormatStreaming, ASourceThatEndsTooSoonEndsTheContainer) {
  MemoryTarget target;
  ContainerWriter writer(target, nullptr);
  const Sample one = sample("short", 5000);
  MemoryFile source(std::vector<std::byte>(4999));
  EXPECT_THROW(writer.add(one.spec, source, 5000), Error);
  EXPECT_THROW((void)writer.finish(), Error);
}

TEST(FormatStreaming, BytesThatAreNotAsManyAsTheShapeSaysAreRefused) {
  MemoryTarget target;
  ContainerWriter writer(target, nullptr);
  MemoryFile source(std::vector<std::byte>(5000));
  EXPECT_THROW(writer.add(sample("other", 5000).spec, source, 4999), Error);
}

}  // namespace
}  // namespace kedge::format::testing::streaming_test

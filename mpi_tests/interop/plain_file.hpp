// A container's target on a plain file, without a store.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "format/container_writer.hpp"

namespace kedge::testing {

class PlainFile final : public format::ContainerTarget, public fs::ByteAccess {
 public:
  /// Makes the file or empties it.
  explicit PlainFile(const std::string& path);
  ~PlainFile() override;

  void reserve(std::uint64_t size_bytes) override;
  fs::ByteAccess& bytes() override { return *this; }
  void set_size(std::uint64_t size_bytes) override;
  std::uint32_t write_with_crc(std::uint64_t offset, std::span<const std::byte> bytes, std::uint32_t crc) override;
  std::uint32_t read_with_crc(std::uint64_t offset, std::span<std::byte> bytes, std::uint32_t crc) override;
  std::uint32_t checksum(std::uint64_t offset, std::uint64_t length, std::uint32_t crc) override;

 private:
  int number_;
};

/// Appends element `i` as read_containers.py and read_manifest.py know it: i - 3 for signed integers, i for unsigned,
/// (i - 3) / 2 for floats, (i / 2, -i) for complex, odd i for bool, 7 i modulo 256 for opaque. Floats of few bits begin
/// anew after the last i whose value they hold exactly: bfloat16 after 127 elements, float8_e4m3fn 20, float8_e5m2 12.
void append_element(std::vector<std::byte>& bytes, DataType dtype, std::uint64_t i);

}  // namespace kedge::testing

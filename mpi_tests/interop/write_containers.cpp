// Writes containers into the folder given, with values that read_containers.py knows.
//   types.kedge   every type in 0 to 8 dimensions, and empty
//   second.kedge  the same again by prediction: must be byte for byte the same
//   many.kedge    2000 regions in groups, names beyond ASCII, large and small
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <cstdio>
#include <cstring>
#include <exception>
#include <numeric>
#include <string>
#include <vector>

#include "base/checksum.hpp"
#include "base/text.hpp"
#include "format/container_writer.hpp"

namespace {

using namespace kedge;
using namespace kedge::format;

class PlainFile final : public ContainerTarget, public fs::ByteAccess {
 public:
  explicit PlainFile(const std::string& path) : number_(::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600)) {
    if (number_ < 0) throw Error(ErrorCode::io, "cannot make " + path);
  }
  ~PlainFile() override { ::close(number_); }

  void reserve(std::uint64_t size_bytes) override {
    struct stat status {};
    require(::fstat(number_, &status) == 0);
    if (size_bytes > static_cast<std::uint64_t>(status.st_size)) set_size(size_bytes);
  }
  fs::ByteAccess& bytes() override { return *this; }
  void set_size(std::uint64_t size_bytes) override {
    require(::ftruncate(number_, static_cast<off_t>(size_bytes)) == 0);
  }
  std::uint32_t copy_in(std::uint64_t offset, std::span<const std::byte> bytes, std::uint32_t crc) override {
    const ssize_t written = ::pwrite(number_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    require(written == static_cast<ssize_t>(bytes.size()));
    return crc32c(bytes, crc);
  }
  std::uint32_t copy_out(std::uint64_t offset, std::span<std::byte> bytes, std::uint32_t crc) override {
    const ssize_t got = ::pread(number_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    require(got == static_cast<ssize_t>(bytes.size()));
    return crc32c(bytes, crc);
  }
  std::uint32_t checksum(std::uint64_t offset, std::uint64_t length, std::uint32_t crc) override {
    std::vector<std::byte> bytes(length);
    return copy_out(offset, bytes, crc);
  }

 private:
  static void require(bool ok) {
    if (!ok) throw Error(ErrorCode::io, "a system call on the test's file failed");
  }
  int number_;
};

template <class T>
void append(std::vector<std::byte>& bytes, T value) {
  const auto raw = std::bit_cast<std::array<std::byte, sizeof(T)>>(value);
  bytes.insert(bytes.end(), raw.begin(), raw.end());
}

// Of a number that a half holds exactly, not subnormal.
std::uint16_t to_half(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = bits >> 16U & 0x8000U;
  if ((bits & 0x7fffffffU) == 0) return static_cast<std::uint16_t>(sign);
  const std::uint32_t exponent = (bits >> 23U & 0xffU) - 127 + 15;
  return static_cast<std::uint16_t>(sign | exponent << 10U | (bits >> 13U & 0x3ffU));
}

// Element i of every region: i - 3 for signed integers, i for unsigned, (i - 3) / 2 for floats, (i / 2, -i) for
// complex, odd i for bool, 7 i modulo 256 for opaque.
void append_element(std::vector<std::byte>& bytes, DataType dtype, std::uint64_t i) {
  const auto whole = static_cast<std::int64_t>(i) - 3;
  const auto real = static_cast<double>(whole) / 2;
  const auto narrow = static_cast<float>(real);
  switch (dtype) {
    case DataType::int8: return append(bytes, static_cast<std::int8_t>(whole));
    case DataType::int16: return append(bytes, static_cast<std::int16_t>(whole));
    case DataType::int32: return append(bytes, static_cast<std::int32_t>(whole));
    case DataType::int64: return append(bytes, whole);
    case DataType::uint8: return append(bytes, static_cast<std::uint8_t>(i));
    case DataType::uint16: return append(bytes, static_cast<std::uint16_t>(i));
    case DataType::uint32: return append(bytes, static_cast<std::uint32_t>(i));
    case DataType::uint64: return append(bytes, i);
    case DataType::float16: return append(bytes, to_half(narrow));
    case DataType::bfloat16:
      return append(bytes, static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(narrow) >> 16U));
    case DataType::float32: return append(bytes, narrow);
    case DataType::float64: return append(bytes, real);
    case DataType::complex64: append(bytes, static_cast<float>(i) / 2); return append(bytes, -static_cast<float>(i));
    case DataType::complex128: append(bytes, static_cast<double>(i) / 2); return append(bytes, -static_cast<double>(i));
    case DataType::boolean: return append(bytes, static_cast<std::uint8_t>(i % 2));
    case DataType::opaque: return append(bytes, static_cast<std::uint8_t>(7 * i));
  }
}

void add(ContainerWriter& writer, std::string name, DataType dtype, const std::vector<std::uint64_t>& extents) {
  std::vector<std::byte> bytes;
  const std::uint64_t count = std::accumulate(extents.begin(), extents.end(), std::uint64_t{1}, std::multiplies<>());
  for (std::uint64_t i = 0; i < count; ++i) append_element(bytes, dtype, i);
  writer.add({std::move(name), dtype, Shape(extents), {}, false}, bytes);
}

Superblock identity() {
  Superblock superblock;
  for (std::size_t i = 0; i < 16; ++i) {
    superblock.run_id.bytes[i] = static_cast<std::uint8_t>(i + 1);
    superblock.commit_id.bytes[i] = static_cast<std::uint8_t>(i + 101);
  }
  superblock.generation = 42;
  superblock.incarnation = 3;
  superblock.logical_rank = {5};
  superblock.world_size = 8;
  superblock.time_ns = 1234567890;
  superblock.tag = "step-000042";
  return superblock;
}

std::shared_ptr<const Layout> write_types(const std::string& path, std::shared_ptr<const Layout> predicted) {
  PlainFile file(path);
  ContainerWriter writer(file, std::move(predicted));
  for (std::uint8_t type = 1; type <= 16; ++type) {
    const auto dtype = static_cast<DataType>(type);
    for (std::uint64_t dimensions = 0; dimensions <= Shape::kMaxDimensions; ++dimensions) {
      std::vector<std::uint64_t> extents;
      for (std::uint64_t d = 0; d < dimensions; ++d) extents.push_back(d < 2 ? d + 2 : 1 + d % 2);
      add(writer, compose("{}/d{}", to_string(dtype), dimensions), dtype, extents);
    }
    add(writer, compose("{}/empty", to_string(dtype)), dtype, {4, 0});
  }
  auto layout = writer.finish();
  writer.seal(identity());
  return layout;
}

void write_many(const std::string& path) {
  PlainFile file(path);
  ContainerWriter writer(file, nullptr);
  for (std::uint64_t i = 0; i < 2000; ++i) {
    const std::uint64_t count = i % 200 == 0 ? 20000 + i : i % 50;
    add(writer, compose("groep \xc3\xab{}/r\xe2\x82\xac{}", i % 7, i), DataType::uint32, {count});
  }
  static_cast<void>(writer.finish());
  writer.seal(identity());
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) {
    std::fputs("usage: write_containers FOLDER\n", stderr);
    return 2;
  }
  try {
    const std::string folder = arguments[1];
    const auto layout = write_types(folder + "/types.kedge", nullptr);
    write_types(folder + "/second.kedge", layout);
    write_many(folder + "/many.kedge");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}

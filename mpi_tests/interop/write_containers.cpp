// Writes containers into the directory given, with values that read_containers.py knows.
//   types.kedge   every type in 0 to 8 dimensions, and empty; every value of the types of 8 bits that have NaN
//   second.kedge  the same again by prediction: must be byte for byte the same
//   many.kedge    2000 regions in groups, names beyond ASCII, large and small
#include <cstdio>
#include <exception>
#include <numeric>
#include <string>
#include <vector>

#include "base/text.hpp"
#include "format/container_writer.hpp"
#include "interop/plain_file.hpp"

namespace {

using namespace kedge;
using namespace kedge::format;
using kedge::testing::append_element;
using kedge::testing::PlainFile;

void add(ContainerWriter& writer, std::string name, DataType dtype, const std::vector<std::uint64_t>& extents) {
  std::vector<std::byte> bytes;
  const std::uint64_t count = std::accumulate(extents.begin(), extents.end(), std::uint64_t{1}, std::multiplies<>());
  for (std::uint64_t i = 0; i < count; ++i) append_element(bytes, dtype, i);
  writer.add({std::move(name), dtype, Shape(extents), {}, false}, bytes);
}

Superblock identity() {
  Superblock superblock;
  for (std::size_t i = 0; i < 16; ++i) {
    superblock.commit.run_id.bytes[i] = static_cast<std::uint8_t>(i + 1);
    superblock.commit.id.bytes[i] = static_cast<std::uint8_t>(i + 101);
  }
  superblock.commit.generation = 42;
  superblock.commit.incarnation = 3;
  superblock.logical_rank = {5};
  superblock.commit.world_size = 8;
  superblock.commit.time_ns = 1234567890;
  superblock.commit.tag = "step-000042";
  return superblock;
}

std::shared_ptr<const Layout> write_types(const std::string& path, std::shared_ptr<const Layout> predicted) {
  PlainFile file(path);
  ContainerWriter writer(file, std::move(predicted));
  for (std::uint8_t type = 1; type <= static_cast<std::uint8_t>(kLastDataType); ++type) {
    const auto dtype = static_cast<DataType>(type);
    for (std::uint64_t dimensions = 0; dimensions <= Shape::kMaxDimensions; ++dimensions) {
      std::vector<std::uint64_t> extents;
      for (std::uint64_t d = 0; d < dimensions; ++d) extents.push_back(d < 2 ? d + 2 : 1 + d % 2);
      add(writer, compose("{}/d{}", to_string(dtype), dimensions), dtype, extents);
    }
    add(writer, compose("{}/empty", to_string(dtype)), dtype, {4, 0});
  }
  std::vector<std::byte> patterns(256);
  for (std::size_t i = 0; i < patterns.size(); ++i) patterns[i] = static_cast<std::byte>(i);
  for (const DataType dtype : {DataType::float8_e4m3fn, DataType::float8_e5m2}) {
    writer.add({compose("patterns/{}", to_string(dtype)), dtype, Shape{256}, {}, false}, patterns);
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
    std::fputs("usage: write_containers DIRECTORY\n", stderr);
    return 2;
  }
  try {
    const std::string directory = arguments[1];
    const auto layout = write_types(directory + "/types.kedge", nullptr);
    write_types(directory + "/second.kedge", layout);
    write_many(directory + "/many.kedge");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}

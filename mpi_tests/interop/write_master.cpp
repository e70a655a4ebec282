// Writes a persistent commit of 8 ranks into the folder given, data/0 and data/1 below it exist already; its values and
// shapes are known to read_master.py. Every element of a global array says which one it is.
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "base/text.hpp"
#include "format/attributes.hpp"
#include "format/master.hpp"
#include "interop/plain_file.hpp"

namespace {

using namespace kedge;
using namespace kedge::format;
using kedge::testing::append_element;
using kedge::testing::PlainFile;

constexpr std::uint32_t kRanks = 8;

// Who saves what: from here both the containers and the view are made.
struct Piece {
  RegionSpec spec;
  std::uint32_t rank = 0;
};

void add_array(std::vector<Piece>& pieces, const std::string& name, DataType dtype, const Shape& global_shape,
               const std::vector<Block>& blocks) {
  for (const Block& block : blocks) {
    pieces.push_back({{name, dtype, block.shape, Shard{global_shape, block.offset, false}, false}, block.rank});
  }
}

// Halves of halves of halves, each cut elsewhere than its neighbour.
std::vector<Block> uneven_grid() {
  std::vector<Block> blocks;
  const std::array<std::uint64_t, 3> xs{0, 3, 7};
  for (std::uint32_t x = 0; x < 2; ++x) {
    const std::array<std::uint64_t, 3> ys{0, 4 + 2 * x, 11};
    for (std::uint32_t y = 0; y < 2; ++y) {
      const std::array<std::uint64_t, 3> zs{0, 5 + x + 3 * y, 13};
      for (std::uint32_t z = 0; z < 2; ++z) {
        blocks.push_back({(4 * x + 2 * y + z + 3) % kRanks, Shape{xs[x], ys[y], zs[z]},
                          Shape{xs[x + 1] - xs[x], ys[y + 1] - ys[y], zs[z + 1] - zs[z]}});
      }
    }
  }
  return blocks;
}

std::vector<Piece> make_pieces() {
  std::vector<Piece> pieces;
  for (std::uint8_t type = 1; type <= 16; ++type) {
    const auto dtype = static_cast<DataType>(type);
    add_array(pieces, compose("field/{}", to_string(dtype)), dtype, Shape{7, 11, 13}, uneven_grid());
  }
  std::vector<Block> particles, rows;
  for (std::uint32_t rank = 0, begin = 0; rank < kRanks; begin += rank * rank, ++rank) {
    particles.push_back({rank, Shape{begin}, Shape{std::uint64_t{rank} * rank}});  // none of rank 0
    rows.push_back({rank, Shape{std::uint64_t{50} * rank, 0}, Shape{50, 200}});
  }
  add_array(pieces, "particles", DataType::int64, Shape{140}, particles);
  add_array(pieces, "large", DataType::float64, Shape{400, 200}, rows);
  add_array(pieces, "100%b/\xce\xb1 %%0b", DataType::int32, Shape{400, 200}, rows);
  add_array(pieces, "deep", DataType::uint16, Shape{2, 1, 2, 1, 2, 1, 1, 2},
            {{6, Shape{0, 0, 0, 0, 0, 0, 0, 0}, Shape{1, 1, 2, 1, 2, 1, 1, 2}},
             {1, Shape{1, 0, 0, 0, 0, 0, 0, 0}, Shape{1, 1, 2, 1, 2, 1, 1, 2}}});
  add_array(pieces, "holes", DataType::float32, Shape{10, 10}, {{4, Shape{2, 3}, Shape{5, 6}}});
  add_array(pieces, "only holes", DataType::float32, Shape{4}, {{4, Shape{2}, Shape{0}}});
  add_array(pieces, "empty", DataType::float32, Shape{0, 3}, {{0, Shape{0, 0}, Shape{0, 3}}});
  add_array(pieces, "step", DataType::int64, Shape{}, {{5, Shape{}, Shape{}}});
  for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
    pieces.push_back({{"own/state", DataType::uint32, Shape{rank, 2}, {}, false}, rank});
    pieces.push_back({{"constants/seed", DataType::uint64, Shape{4}, Replicated{}, false}, rank});
  }
  return pieces;
}

// Row-major place of each of the block's elements in the whole array.
std::vector<std::byte> bytes_of(const RegionSpec& spec) {
  const auto* shard = std::get_if<Shard>(&spec.placement);
  const Shape& whole = shard != nullptr ? shard->global_shape : spec.shape;
  std::vector<std::byte> bytes;
  const std::uint64_t count = size_bytes(spec) / size_bytes(spec.dtype);
  for (std::uint64_t element = 0; element < count; ++element) {
    std::uint64_t rest = element;
    std::uint64_t place = 0;
    std::uint64_t stride = 1;
    for (std::size_t d = spec.shape.dimensions(); d-- > 0;) {
      place += (rest % spec.shape[d] + (shard != nullptr ? shard->offset[d] : 0)) * stride;
      rest /= spec.shape[d];
      stride *= whole[d];
    }
    append_element(bytes, spec.dtype, spec.dtype == DataType::bfloat16 ? place % 127 : place);  // it has 8 bits
  }
  return bytes;
}

View view_of(const std::vector<Piece>& pieces) {
  View view;
  for (const Piece& piece : pieces) {
    if (std::holds_alternative<Replicated>(piece.spec.placement) && piece.rank == 2) {
      view.replicas.push_back({piece.spec.name, 2});
    }
    const auto* shard = std::get_if<Shard>(&piece.spec.placement);
    if (shard == nullptr) continue;
    if (view.arrays.empty() || view.arrays.back().name != piece.spec.name) {
      view.arrays.push_back({piece.spec.name, piece.spec.dtype, shard->global_shape, {}});
    }
    view.arrays.back().blocks.push_back({piece.rank, shard->offset, piece.spec.shape});
  }
  return view;
}

MasterHead identity() {
  MasterHead head;
  std::iota(head.run_id.bytes.begin(), head.run_id.bytes.end(), std::uint8_t{1});
  std::iota(head.commit_id.bytes.begin(), head.commit_id.bytes.end(), std::uint8_t{101});
  head.generation = 42;
  head.incarnation = 3;
  head.world_size = kRanks;
  head.time_ns = 1234567890;
  head.tag = "step-000042";
  head.run = "heat";
  return head;
}

ShardRow write_container(const std::string& folder, const std::vector<Piece>& pieces, std::uint32_t rank) {
  const std::string name = compose("data/{}/rank-{}.h5", rank / 4, rank);
  PlainFile file(folder + "/" + name);
  ContainerWriter writer(file, nullptr);
  for (const Piece& piece : pieces) {
    if (piece.rank == rank) writer.add(piece.spec, bytes_of(piece.spec));
  }
  const auto layout = writer.finish();
  const MasterHead head = identity();
  Superblock superblock;
  superblock.run_id = head.run_id;
  superblock.commit_id = head.commit_id;
  superblock.generation = head.generation;
  superblock.logical_rank = LogicalRank{rank};
  superblock.world_size = kRanks;
  superblock.tag = head.tag;
  writer.seal(superblock);
  const ContainerReader reader(file, layout->file_size, name);
  return {name,
          layout->file_size,
          reader.superblock().index_offset,
          static_cast<std::uint32_t>(reader.superblock().index_size),
          reader.superblock().index_crc,
          reader.file_crc()};
}

void write_bytes(const std::string& path, std::span<const std::byte> bytes) {
  PlainFile file(path);
  static_cast<void>(file.copy_in(0, bytes, 0));
}

void write_all(const std::string& folder) {
  const std::vector<Piece> pieces = make_pieces();
  std::vector<ShardRow> rows;
  std::vector<std::string> files;
  MasterHead head = identity();
  for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
    rows.push_back(write_container(folder, pieces, rank));
    files.push_back(rows.back().file);
    head.total_bytes += rows.back().size_bytes;
  }
  const View view = view_of(pieces);
  const Attributes attributes{
      {"time", 0.25}, {"cells", std::vector<std::int64_t>{7, 11, 13}}, {"\xce\xb1", "\xce\xb2"}};
  write_bytes(folder + "/checkpoint.h5", encode_master(*make_master_layout(&view, files, 100), head, rows, attributes));
  write_bytes(folder + "/plain.h5", encode_master(*make_master_layout(nullptr, files, 0), head, rows, {}));
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) {
    std::fputs("usage: write_master FOLDER\n", stderr);
    return 2;
  }
  try {
    write_all(arguments[1]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}

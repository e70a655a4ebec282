#include "interop/known_pieces.hpp"

#include <array>
#include <string>

#include "base/text.hpp"
#include "format/manifest.hpp"
#include "interop/plain_file.hpp"

namespace kedge::testing {
namespace {

using format::SavedBlock;

void add_array(std::vector<Piece>& pieces, const std::string& name, DataType dtype, const Shape& global_shape,
               const std::vector<SavedBlock>& blocks, bool holes_allowed = false) {
  for (const SavedBlock& block : blocks) {
    pieces.push_back({{name, dtype, block.shape, Shard{global_shape, block.offset, holes_allowed}, false}, block.rank});
  }
}

// Halves of halves of halves, each cut elsewhere than its neighbour.
std::vector<SavedBlock> uneven_grid() {
  std::vector<SavedBlock> blocks;
  const std::array<std::uint64_t, 3> xs{0, 3, 7};
  for (std::uint32_t x = 0; x < 2; ++x) {
    const std::array<std::uint64_t, 3> ys{0, 4 + 2 * x, 11};
    for (std::uint32_t y = 0; y < 2; ++y) {
      const std::array<std::uint64_t, 3> zs{0, 5 + x + 3 * y, 13};
      for (std::uint32_t z = 0; z < 2; ++z) {
        blocks.push_back({(4 * x + 2 * y + z + 3) % kKnownRanks, Shape{xs[x], ys[y], zs[z]},
                          Shape{xs[x + 1] - xs[x], ys[y + 1] - ys[y], zs[z + 1] - zs[z]}});
      }
    }
  }
  return blocks;
}

}  // namespace

std::vector<Piece> known_pieces() {
  std::vector<Piece> pieces;
  for (std::uint8_t type = 1; type <= static_cast<std::uint8_t>(kLastDataType); ++type) {
    const auto dtype = static_cast<DataType>(type);
    add_array(pieces, compose("field/{}", to_string(dtype)), dtype, Shape{7, 11, 13}, uneven_grid());
  }
  std::vector<SavedBlock> particles, rows;
  for (std::uint32_t rank = 0, begin = 0; rank < kKnownRanks; begin += rank * rank, ++rank) {
    particles.push_back({rank, Shape{begin}, Shape{std::uint64_t{rank} * rank}});  // none of rank 0
    rows.push_back({rank, Shape{std::uint64_t{50} * rank, 0}, Shape{50, 200}});
  }
  add_array(pieces, "particles", DataType::int64, Shape{140}, particles);
  add_array(pieces, "large", DataType::float64, Shape{400, 200}, rows);
  add_array(pieces, "100%b/\xce\xb1 %%0b", DataType::int32, Shape{400, 200}, rows);
  add_array(pieces, "deep", DataType::uint16, Shape{2, 1, 2, 1, 2, 1, 1, 2},
            {{6, Shape{0, 0, 0, 0, 0, 0, 0, 0}, Shape{1, 1, 2, 1, 2, 1, 1, 2}},
             {1, Shape{1, 0, 0, 0, 0, 0, 0, 0}, Shape{1, 1, 2, 1, 2, 1, 1, 2}}});
  add_array(pieces, "holes", DataType::float32, Shape{10, 10}, {{4, Shape{2, 3}, Shape{5, 6}}}, true);
  add_array(pieces, "only holes", DataType::float32, Shape{4}, {{4, Shape{2}, Shape{0}}}, true);
  add_array(pieces, "empty", DataType::float32, Shape{0, 3}, {{0, Shape{0, 0}, Shape{0, 3}}});
  add_array(pieces, "step", DataType::int64, Shape{}, {{5, Shape{}, Shape{}}});
  for (std::uint32_t rank = 0; rank < kKnownRanks; ++rank) {
    pieces.push_back({{"own/state", DataType::uint32, Shape{rank, 2}, {}, false}, rank});
    pieces.push_back({{"constants/seed", DataType::uint64, Shape{4}, Replicated{}, false}, rank});
  }
  return pieces;
}

// Row-major place of each of the block's elements in the whole array.
std::vector<std::byte> bytes_of(const format::RegionSpec& spec) {
  const auto* shard = std::get_if<Shard>(&spec.placement);
  const Shape& whole = shard != nullptr ? shard->global_shape : spec.shape;
  std::vector<std::byte> bytes;
  const std::uint64_t count = region_size_bytes(spec) / size_bytes(spec.dtype);
  for (std::uint64_t element = 0; element < count; ++element) {
    std::uint64_t rest = element;
    std::uint64_t place = 0;
    std::uint64_t stride = 1;
    for (std::size_t d = spec.shape.dimensions(); d-- > 0;) {
      place += (rest % spec.shape[d] + (shard != nullptr ? shard->offset[d] : 0)) * stride;
      rest /= spec.shape[d];
      stride *= whole[d];
    }
    append_element(bytes, spec.dtype, place);
  }
  return bytes;
}

Attributes known_attributes() {
  return {{"time", 0.25},
          {"cells", std::vector<std::int64_t>{7, 11, 13}},
          {"\xce\xb1", "\xce\xb2"},
          {"step", std::int64_t{-7}},
          {"weights", std::vector<double>{0.5, -1.5}},
          {"none", std::vector<std::int64_t>{}},
          {"a/../b\n.", std::string()}};
}

}  // namespace kedge::testing

// Writes a persistent commit of 8 ranks into the directory given, data/0 and data/1 below it exist already; its values
// and shapes are known to read_manifest.py. Every element of a global array says which one it is.
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
#include "format/manifest.hpp"
#include "interop/known_pieces.hpp"
#include "interop/plain_file.hpp"

namespace {

using namespace kedge;
using namespace kedge::format;
using kedge::testing::bytes_of;
using kedge::testing::kKnownRanks;
using kedge::testing::Piece;
using kedge::testing::PlainFile;

ManifestView view_of(const std::vector<Piece>& pieces) {
  ManifestView view;
  view.rank_regions.emplace();
  for (const Piece& piece : pieces) {
    const bool is_shared = !std::holds_alternative<std::monostate>(piece.spec.placement);
    view.rank_regions->push_back({piece.rank, piece.spec.name, piece.spec.dtype, piece.spec.shape, is_shared});
    if (std::holds_alternative<Replicated>(piece.spec.placement) && piece.rank == 2) {
      view.replicas.push_back({piece.spec.name, 2, piece.spec.dtype, piece.spec.shape});
    }
    const auto* shard = std::get_if<Shard>(&piece.spec.placement);
    if (shard == nullptr) continue;
    if (view.arrays.empty() || view.arrays.back().name != piece.spec.name) {
      view.arrays.push_back({piece.spec.name, piece.spec.dtype, shard->global_shape, {}, shard->holes_allowed});
    }
    view.arrays.back().blocks.push_back({piece.rank, shard->offset, piece.spec.shape});
  }
  return view;
}

ManifestHead identity() {
  ManifestHead head;
  std::iota(head.commit.run_id.bytes.begin(), head.commit.run_id.bytes.end(), std::uint8_t{1});
  std::iota(head.commit.id.bytes.begin(), head.commit.id.bytes.end(), std::uint8_t{101});
  head.commit.generation = 42;
  head.commit.incarnation = 3;
  head.commit.world_size = kKnownRanks;
  head.commit.time_ns = 1234567890;
  head.commit.tag = kedge::testing::kKnownTag;
  head.run = "heat";
  return head;
}

ShardRow write_container(const std::string& directory, const std::vector<Piece>& pieces, std::uint32_t rank) {
  const std::string name = compose("data/{}/rank-{}.h5", rank / 4, rank);
  PlainFile file(directory + "/" + name);
  ContainerWriter writer(file, nullptr);
  for (const Piece& piece : pieces) {
    if (piece.rank == rank) writer.add(piece.spec, bytes_of(piece.spec));
  }
  const auto layout = writer.finish();
  const ManifestHead head = identity();
  Superblock superblock;
  superblock.commit = head.commit;
  superblock.logical_rank = LogicalRank{rank};
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
  static_cast<void>(file.write_with_crc(0, bytes, 0));
}

void write_all(const std::string& directory) {
  const std::vector<Piece> pieces = kedge::testing::known_pieces();
  std::vector<ShardRow> rows;
  std::vector<std::string> files;
  ManifestHead head = identity();
  for (std::uint32_t rank = 0; rank < kKnownRanks; ++rank) {
    rows.push_back(write_container(directory, pieces, rank));
    files.push_back(rows.back().file);
    head.total_bytes += rows.back().size_bytes;
  }
  const ManifestView view = view_of(pieces);
  const Attributes attributes = kedge::testing::known_attributes();
  write_bytes(directory + "/checkpoint.h5",
              encode_manifest(*make_manifest_layout(&view, files, attributes), head, rows, attributes));
  write_bytes(directory + "/plain.h5", encode_manifest(*make_manifest_layout(nullptr, files, {}), head, rows, {}));
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) {
    std::fputs("usage: write_manifest DIRECTORY\n", stderr);
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

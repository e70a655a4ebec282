// The manifest of a persistent commit, checkpoint.h5: lists its containers, and shows them as one HDF5 file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "format/container_reader.hpp"
#include "format/cover.hpp"
#include "format/superblock.hpp"
#include "fs/file_system.hpp"
#include "kedge/attributes.hpp"
#include "kedge/types.hpp"

namespace kedge::format {

/// A row of the shard table: one logical rank's container.
struct ShardRow {
  std::string file;  ///< relative to the manifest's directory, e.g. "data/0/rank-17.h5"; at most 32 bytes
  std::uint64_t size_bytes = 0;
  std::uint64_t index_offset = 0;
  std::uint32_t index_size = 0;
  std::uint32_t index_crc = 0;  ///< checksum of the index, as in the container's superblock
  std::uint32_t crc = 0;        ///< CRC32C of the container file
  bool operator==(const ShardRow&) const = default;
};

/// The first 4096 bytes of a manifest.
struct ManifestHead {
  CommitHead commit;              ///< its world size is the number of rows
  std::uint64_t total_bytes = 0;  ///< container bytes of all ranks
  std::string run;                ///< the run's name
  // Set by encode_manifest:
  std::uint64_t file_size = 0;
  std::uint64_t table_offset = 0;       ///< commit.world_size rows of kShardRowBytes
  std::uint64_t attributes_offset = 0;  ///< 0: there are none
  std::uint64_t attributes_size = 0;    ///< JSON, padding not counted
  bool has_view = false;                ///< false: there were more shards than a view may have
  std::vector<Extent> extents;          ///< all of the file behind these bytes, by offset
  bool operator==(const ManifestHead&) const = default;
};

/// Content of the HDF5 view, which depends on the checkpoint's structure but not on its data.
struct ManifestView {
  struct Array {
    std::string name;  ///< like region names: `/` separates groups
    DataType dtype = DataType::opaque;
    Shape global_shape;
    std::vector<SavedBlock> blocks;
    bool holes_allowed = false;
    std::string members = {};  ///< of structs
  };
  /// A region that is equal on all ranks, shown from one of them.
  struct Replica {
    std::string name;
    std::uint32_t rank = 0;
    DataType dtype = DataType::opaque;
    Shape shape = {};
    std::string members = {};  ///< of structs
  };
  /// A region saved by one rank, under `/ranks/<rank>`: a link there if it is also shown as a shard or replica.
  struct RankRegion {
    std::uint32_t rank = 0;
    std::string name;
    DataType dtype = DataType::opaque;
    Shape shape;
    bool is_shared = false;    ///< a shard or a replica
    std::string members = {};  ///< of structs
  };
  std::vector<Array> arrays;
  std::vector<Replica> replicas;
  std::optional<std::vector<RankRegion>> rank_regions = std::nullopt;  ///< nothing if there are too many to list
};

/// The parts of a manifest that do not change while the structure stays. Immutable and shared.
class ManifestLayout;

/// `files` has the container of each logical rank, relative to the manifest's directory. The file shows
/// `/.kedge/shards` as a table with named columns, `/.kedge/attributes` as JSON text, and the attributes as HDF5
/// attributes. With `view`, arrays and replicas become virtual datasets over the containers, and `/ranks/<r>` a group
/// of virtual datasets if `view` lists the ranks' regions, otherwise a link to the container's root. Datasets without
/// elements or dimensions become links, because HDF5 has no such virtual datasets. Without `view` there are only table,
/// attributes and links to containers. If `attributes` is not empty, there is space for others of the same keys and
/// types that are somewhat longer. Throws Error{io} if HDF5 fails, Error{invalid_argument} if two names contradict each
/// other ("a" and "a/b") or an attribute cannot be stored.
[[nodiscard]] std::shared_ptr<const ManifestLayout> make_manifest_layout(const ManifestView* view,
                                                                         std::span<const std::string> files,
                                                                         const Attributes& attributes);

/// Whether a manifest of this layout can hold these attributes.
[[nodiscard]] bool can_hold_attributes(const ManifestLayout& layout, const Attributes& attributes);

/// Encodes the whole file, without HDF5. head.commit.world_size and the rows' files must be those of the layout. Throws
/// Error{invalid_argument} if they are not, or if something does not fit.
[[nodiscard]] std::vector<std::byte> encode_manifest(const ManifestLayout& layout, ManifestHead head,
                                                     std::span<const ShardRow> rows, const Attributes& attributes);

/// Reads a manifest without HDF5; checks everything against its checksum.
class ManifestReader {
 public:
  /// Reads and checks the first 4096 bytes and the file's size. `bytes` must outlive the reader. Throws Error{corrupt}
  /// if it is not a manifest, not sealed or truncated, or checksum or fields are wrong; Error{mismatch} with the
  /// version if the format is newer.
  ManifestReader(fs::ByteAccess& bytes, std::uint64_t file_size, std::string path);

  [[nodiscard]] const ManifestHead& head() const noexcept { return head_; }
  /// Reads and checks one row, with its own checksum: the file lies below the directory, the index inside the
  /// container. Throws Error{corrupt}; Error{not_found} if there is no such rank.
  [[nodiscard]] ShardRow row(LogicalRank logical_rank) const;
  /// Reads all rows at once, by rank. Throws Error{corrupt} with the first damaged one.
  [[nodiscard]] std::vector<ShardRow> rows() const;
  /// Empty if there are no attributes. Throws Error{corrupt}.
  [[nodiscard]] Attributes attributes() const;
  /// Compares every byte of the file, and every row, with its checksum. Empty if nothing is damaged. `on_progress` gets
  /// the number of bytes checked since its last call.
  [[nodiscard]] std::vector<Damage> verify(const std::function<void(std::uint64_t)>& on_progress = {}) const;

 private:
  fs::ByteAccess& bytes_;
  std::string path_;
  ManifestHead head_;
};

}  // namespace kedge::format

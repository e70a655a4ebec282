// The manifest file of a persistent commit, checkpoint.h5: who belongs to it, and a view of all containers as one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "format/container_reader.hpp"
#include "format/cover.hpp"
#include "format/on_disk.hpp"
#include "format/superblock.hpp"
#include "fs/file_system.hpp"
#include "kedge/attributes.hpp"
#include "kedge/types.hpp"

namespace kedge::format {

/// One row of the shard table: the container of one logical rank.
struct ShardRow {
  std::string file;  ///< below the manifest's directory, e.g. "data/0/rank-17.h5"; at most 32 bytes
  std::uint64_t size_bytes = 0;
  std::uint64_t index_offset = 0;
  std::uint32_t index_size = 0;
  std::uint32_t index_crc = 0;  ///< of the index's bytes, as in the container's superblock
  std::uint32_t crc = 0;        ///< CRC32C of the whole container file
  bool operator==(const ShardRow&) const = default;
};

/// The first 4096 bytes of a manifest.
struct ManifestHead {
  CommitHead commit;              ///< its world size is the number of rows of the shard table
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

/// Content of the HDF5 view. It depends on the structure of the checkpoint alone, not on its data.
struct View {
  struct Array {
    std::string name;  ///< as the regions' names: `/` makes groups
    DataType dtype = DataType::opaque;
    Shape global_shape;
    std::vector<Block> blocks;
    bool holes_allowed = false;
    std::string members = {};  ///< of structs (members.hpp)
  };
  /// A region of one rank that stands for the same one of all ranks.
  struct Replica {
    std::string name;
    std::uint32_t rank = 0;
    DataType dtype = DataType::opaque;
    Shape shape = {};
    std::string members = {};  ///< of structs
  };
  /// A region that one rank saved, under `/ranks/<rank>`. Shared ones are shown above and have a link here.
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
  std::optional<std::vector<RankRegion>> rank_regions = std::nullopt;  ///< nothing: too many to be listed
};

/// Everything of a manifest that stays the same while the structure does. Immutable and shared.
class ManifestLayout;

/// `files`: the container of each logical rank, below the manifest's directory; that is the world size. The file shows
/// `/.kedge/shards` as a table with named columns, `/.kedge/attributes` as JSON text, the attributes also as HDF5's,
/// the arrays and replicas as virtual datasets over the containers, and `/ranks/<r>` as a group of virtual datasets if
/// `view` lists the ranks' regions, else as a link to the container's root. What has no elements or no dimensions,
/// which virtual datasets do not know, is a link. Without `view` only table, attributes and links to containers are
/// there. There is room for `attributes` and for others of the same keys and types that are somewhat longer, unless
/// they are empty. Throws Error{io} if HDF5 fails, Error{invalid_argument} if two names contradict each other ("a" and
/// "a/b") or an attribute cannot be stored.
[[nodiscard]] std::shared_ptr<const ManifestLayout> make_manifest_layout(const View* view,
                                                                         std::span<const std::string> files,
                                                                         const Attributes& attributes);

/// Whether a manifest of this layout takes these attributes.
[[nodiscard]] bool takes(const ManifestLayout& layout, const Attributes& attributes);

/// The whole file. HDF5 is not called. head.commit.world_size and the rows' files must be those of the layout. Throws
/// Error{invalid_argument} if they are not, or anything does not fit.
[[nodiscard]] std::vector<std::byte> encode_manifest(const ManifestLayout& layout, ManifestHead head,
                                                     std::span<const ShardRow> rows, const Attributes& attributes);

/// Reads a manifest without HDF5; nothing is trusted that does not match its checksum.
class ManifestReader {
 public:
  /// Reads and checks the first 4096 bytes and the file's size. `bytes` must outlive the reader. Throws Error{corrupt}:
  /// no manifest, not sealed, checksum wrong, truncated, fields that contradict each other; Error{mismatch} by name if
  /// it is of a newer format version.
  ManifestReader(fs::ByteAccess& bytes, std::uint64_t file_size, std::string path);

  [[nodiscard]] const ManifestHead& head() const noexcept { return head_; }
  /// One row, read and checked by its own checksum; what it says lies below the directory and inside the container.
  /// Throws Error{corrupt}; Error{not_found} if there is no such rank.
  [[nodiscard]] ShardRow row(LogicalRank logical_rank) const;
  /// All rows, by rank, read at once. Throws Error{corrupt} that names the first damaged one.
  [[nodiscard]] std::vector<ShardRow> rows() const;
  /// Empty if there are none. Throws Error{corrupt}.
  [[nodiscard]] Attributes attributes() const;
  /// Every byte of the file against its checksum, and every row against its own; empty if all is well. `on_progress`
  /// is called with the bytes checked since the last call.
  [[nodiscard]] std::vector<Damage> verify(const std::function<void(std::uint64_t)>& on_progress = {}) const;

 private:
  fs::ByteAccess& bytes_;
  std::string path_;
  ManifestHead head_;
};

}  // namespace kedge::format

// Shards of global arrays and replicated regions: saved by ranks together, checked by the home processes of their
// names.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "arrays/name_bits.hpp"
#include "comm/group.hpp"
#include "format/cover.hpp"
#include "format/manifest.hpp"
#include "format/region_map.hpp"
#include "kedge/error.hpp"

namespace kedge::arrays {

/// A region of one rank as the whole job sees it. Regions that are a rank's own are not shared.
struct SharedRegion {
  std::string name;
  DataType dtype = DataType::opaque;
  Shape shape;
  std::optional<Shard> shard;  ///< nothing: replicated
  std::string members = {};    ///< of structs
};

/// How many regions, of all ranks, the view lists below `/ranks`: each costs rank 0 about 0.1 ms in HDF5 whenever the
/// structure changes, and half a kilobyte of every manifest (decision 017).
inline constexpr std::uint64_t kListedRegionsMax = 1000;

/// Shared regions of a container.
[[nodiscard]] std::vector<SharedRegion> shared_regions(std::span<const format::StoredRegion> regions);

/// The names of the shared regions.
[[nodiscard]] NameBits shared_names(std::span<const format::StoredRegion> regions);
/// What ranks know of each other's containers after one all-reduce; the same on all ranks.
struct ComparedContainers {
  std::optional<NameBits> names;  ///< shared names of all ranks, if any rank's structure changed
  bool has_replicas = false;      ///< on some rank
  bool replicas_are_equal = true;
};
/// COLLECTIVE, one all-reduce. `replicas`: digest_of this rank's.
[[nodiscard]] ComparedContainers compare_containers(const comm::Group& group, bool changed, const NameBits& names,
                                                    std::uint64_t replicas);
/// The rank's own regions whose names may be among these: few, unless these are hundreds.
[[nodiscard]] std::vector<SharedRegion> own_regions_among(const NameBits& names,
                                                          std::span<const format::StoredRegion> regions);

/// Arrays and replicated regions whose names have their home on this process; no process knows all of them.
class GlobalArrays {
 public:
  /// COLLECTIVE. Every rank sends the homes of its names what it saves under them: one sparse exchange, to be made when
  /// the structure changed and not otherwise. With `own`, also which regions are its own.
  [[nodiscard]] static GlobalArrays exchange(const comm::Group& group, std::span<const SharedRegion> mine,
                                             std::span<const SharedRegion> own = {});

  /// Local, to be voted on. `mismatch` with the first thing that is wrong here: ranks that disagree about dtype, shape
  /// or placement of a name; a hole or overlap; a name that is an array on one rank and a group on another. `io` if
  /// what came from another rank cannot be read.
  [[nodiscard]] std::optional<Failure> check() const;

  /// COLLECTIVE. Rank 0's input for the manifest's HDF5 view; nothing on every rank if there are more than
  /// `view_shards_max` shards, and an empty view on other ranks. It lists the regions of all ranks, of which `mine` are
  /// this rank's, if they are no more than `view_shards_max` and kListedRegionsMax in all. Throws the same Error on
  /// every rank.
  [[nodiscard]] std::optional<format::ManifestView> gather(const comm::Group& group, std::uint64_t view_shards_max,
                                                           std::span<const format::StoredRegion> mine) const;

 private:
  struct Part {
    std::uint32_t rank = 0;
    SharedRegion region;
  };
  struct HomedName {
    std::vector<Part> regions;              ///< by rank
    std::optional<Part> own;                ///< one that is a rank's own
    std::optional<std::uint32_t> group_of;  ///< a rank that has a region below this name
  };
  [[nodiscard]] static std::optional<Failure> check(const std::string& name, const HomedName& homed);
  void add_messages(const std::vector<Communicator::Message>& messages);

  std::optional<Failure> unreadable_;  ///< what came could not be unpacked
  std::map<std::string, HomedName, std::less<>> homed_;
};

}  // namespace kedge::arrays

// What ranks save together: shards of global arrays and replicated regions, checked by homes that their names choose.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "format/cover.hpp"
#include "format/manifest.hpp"
#include "format/region_map.hpp"
#include "kedge/communicator.hpp"
#include "kedge/error.hpp"

namespace kedge::engine {

/// What one region of one rank is to the whole job. Regions that are a rank's own have no part in it.
struct SharedRegion {
  std::string name;
  DataType dtype = DataType::opaque;
  Shape shape;
  std::optional<Shard> shard;  ///< nothing: replicated
};

/// What of a container's regions is shared.
[[nodiscard]] std::vector<SharedRegion> shared_regions(std::span<const format::PlacedRegion> regions);

/// Those of this process's arrays and replicas that are decided on here; no process knows all of them.
class GlobalArrays {
 public:
  /// COLLECTIVE. Every rank tells the homes of its names what it saves under them: one sparse exchange, to be made when
  /// the structure changed and not otherwise.
  [[nodiscard]] static GlobalArrays tell(Communicator& communicator, std::span<const SharedRegion> mine,
                                         Deadline deadline);

  /// Local. `mismatch` with the first thing that is wrong here: ranks that disagree about dtype, shape or placement of
  /// a name; a hole or overlap; a name that is an array on one rank and a group on another.
  [[nodiscard]] std::optional<Failure> check() const;

  /// COLLECTIVE. What rank 0 needs for the manifest's HDF5 view; nothing on every rank if there are more than
  /// `view_limit` shards, and an empty one elsewhere.
  [[nodiscard]] std::optional<format::View> gather(Communicator& communicator, std::uint64_t view_limit,
                                                   Deadline deadline) const;

 private:
  struct Told {
    std::uint32_t rank = 0;
    SharedRegion region;
  };
  struct Homed {
    std::vector<Told> regions;              ///< by rank
    std::optional<std::uint32_t> group_of;  ///< a rank that has a region below this name
  };
  [[nodiscard]] static std::optional<Failure> check(const std::string& name, const Homed& homed);

  std::map<std::string, Homed, std::less<>> homed_;
};

}  // namespace kedge::engine

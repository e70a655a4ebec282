// Makes the manifest of a commit from the containers of all ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/log.hpp"
#include "comm/group.hpp"
#include "format/container_reader.hpp"
#include "format/manifest.hpp"
#include "kedge/attributes.hpp"
#include "persist/tags.hpp"

namespace kedge::persist {

/// With more shards the manifest has no HDF5 view: reading it would take longer than reading the containers.
inline constexpr std::uint64_t kViewShardsMax = 100'000;

struct Manifest {
  TagEntry entry;                ///< the commit's entry, the same on every rank
  std::vector<std::byte> bytes;  ///< content of the file, on rank 0
};

/// Makes manifests. Keeps the layout of the last one, which can be used as long as no rank's structure changes: making
/// a layout takes HDF5 and the shapes of all shards, filling it in takes one row of each rank.
class ManifestBuilder {
 public:
  /// `run` is the run's name. The manifest has an HDF5 view of the global arrays if these have up to `view_shards_max`
  /// shards.
  ManifestBuilder(std::string run, std::uint64_t view_shards_max, const Log& log)
      : run_(std::move(run)), view_shards_max_(view_shards_max), log_(log) {}

  /// Whether build() may make a layout, and call HDF5 for it.
  enum class LayoutPolicy : std::uint8_t { any, known };

  /// COLLECTIVE. Makes the manifest; each rank gives its container of the commit. Throws the same Error on every rank,
  /// and can be called again then: mismatch if a layout is needed that is not known and may not be made.
  [[nodiscard]] Manifest build(const comm::Group& group, const format::ContainerReader& container,
                               LayoutPolicy layouts = LayoutPolicy::any);
  /// Whether the layout of a container with these regions is known, as far as this rank sees; `attributes` are rank
  /// 0's. Local.
  [[nodiscard]] bool has_layout_for(const comm::Group& group, std::span<const format::StoredRegion> regions,
                                    const Attributes& attributes) const;

 private:
  struct Structure {
    std::uint64_t shared_hash = 0;  ///< hash of this rank's shared regions
    std::uint64_t full_hash = 0;    ///< hash of all regions of this rank
    Attributes attributes;          ///< rank 0's
  };

  [[nodiscard]] static Structure structure_of(std::span<const format::StoredRegion> regions);
  [[nodiscard]] bool needs_layout(const comm::Group& group, const Structure& structure) const;
  void make_layout(const comm::Group& group, const format::ContainerReader& container, const Structure& structure);
  [[nodiscard]] TagEntry entry_of(const comm::Group& group, const format::ContainerReader& container) const;
  [[nodiscard]] std::vector<std::byte> encode(const comm::Group& group, const format::ContainerReader& container,
                                              const TagEntry& entry, const Attributes& attributes) const;

  std::string run_;
  std::uint64_t view_shards_max_;
  Log log_;
  bool has_layout_ = false;           ///< equal on every rank
  bool lists_ranks_ = false;          ///< the layout shows each rank's own regions; equal on every rank
  std::uint64_t structure_hash_ = 0;  ///< hash of this rank's part of the layout
  std::shared_ptr<const format::ManifestLayout> layout_;  ///< the last layout, on rank 0
};

}  // namespace kedge::persist

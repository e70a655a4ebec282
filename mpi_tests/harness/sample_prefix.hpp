// A prefix with committed checkpoints as a job leaves them, for tests of what reads them.
#pragma once

#include <cstdint>
#include <string>

#include "format/manifest.hpp"
#include "harness/sample_store.hpp"
#include "persist/tags.hpp"

namespace kedge::testing {

/// The entry of "step-000100", generation 1, in run "heat", and so on; its parent is the generation before.
[[nodiscard]] persist::TagEntry sample_entry(std::uint64_t generation, std::uint32_t ranks = 4);

/// What rank `rank` of `ranks` saves: blocks of the global arrays temperature and mask, own and replicated regions, and
/// a routed file on rank 0.
[[nodiscard]] std::vector<format::RegionSpec> sample_rank_regions(std::uint32_t rank, std::uint32_t ranks);

/// Bytes of a manifest without a view whose containers need not exist.
[[nodiscard]] std::vector<std::byte> sample_manifest(const persist::TagEntry& entry);

/// The tag directory below `prefix`, with sample_manifest alone.
void write_manifest(const std::string& prefix, const persist::TagEntry& entry);
/// With containers of all ranks and no manifest.
void write_containers(const std::string& prefix, const persist::TagEntry& entry);
/// With containers of all ranks and a manifest for them, with attributes and view. The manifest tells the containers'
/// bytes instead of the entry's.
void write_checkpoint(const std::string& prefix, const persist::TagEntry& entry);

/// A temporary prefix, removed with all that is in it when destroyed.
class SamplePrefix {
 public:
  [[nodiscard]] const std::string& directory() const noexcept { return store_.directory(); }
  [[nodiscard]] std::string path(const std::string& name) const { return store_.path(name); }
  [[nodiscard]] std::string container(const persist::TagEntry& entry, std::uint32_t rank) const;

  /// write_checkpoint; returns the tag directory's path.
  std::string add(const persist::TagEntry& entry) const;
  /// Adds the entry to the run's catalog.
  void catalog(const persist::TagEntry& entry) const;

 private:
  SampleStore store_;
};

}  // namespace kedge::testing

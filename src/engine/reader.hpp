// The read side: open, load, close.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "arrays/saved_names.hpp"
#include "device/staging.hpp"
#include "engine/commit_markers.hpp"
#include "engine/lifecycle.hpp"
#include "engine/open_checkpoint.hpp"
#include "engine/store_loss.hpp"
#include "format/container_reader.hpp"
#include "kedge/engine.hpp"
#include "kedge/options.hpp"
#include "kedge/want.hpp"
#include "pipeline/metrics.hpp"
#include "pipeline/pipeline.hpp"
#include "recovery/recovery.hpp"
#include "recovery/source.hpp"

namespace kedge::engine {

class Reader {
 public:
  /// All that is referred to must outlive it.
  struct Uses {
    const comm::Group& group;
    Lifecycle& lifecycle;
    commits::Ledger& ledger;
    CommitMarkers& markers;
    pipeline::BackgroundPause& pause;
    pipeline::Metrics& metrics;
    pipeline::Pipeline& pipeline;
    recovery::Recovery& recovery;
    device::Staging& staging;
    store::NodeStore& store;
    const StoreRecreation& recreation;
    persist::PrefixReader& prefix;
    fs::FileSystem& file_system;
    Clock& clock;
    const Log& log;
    Verify verify = Verify::all;  ///< open.verify
    unsigned copy_threads = 1;
    std::uint64_t load_buffer_bytes = 0;  ///< open.buffer_bytes
  };

  Reader(const Uses& uses, recovery::SourceRecovery sources) : uses_(uses), sources_(std::move(sources)) {}

  /// With Reading::in_load on all ranks, what is opened is checked as it is loaded; close says whether it was intact.
  std::optional<Tag> open(const Selection& selection, Newer newer, recovery::Reading reading);
  [[nodiscard]] std::vector<RegionInfo> regions() const;
  [[nodiscard]] CheckpointInfo info() const;
  /// A `placement` that is stated must be the one that was saved.
  Status load(std::string_view name, const MutableRegion& region, const Placement& placement = {});
  Routed route_in(std::string_view name);
  /// COLLECTIVE. Throws the same Error on all ranks; close then throws it, too, if it is damage.
  /// `local`: why this rank cannot ask for anything.
  void load_all(std::span<const Want> wants, std::optional<Failure> local = {});
  /// COLLECTIVE. How the ranks saved what has these names, before it is asked for. `local`: why this rank cannot ask.
  /// Throws as load_all.
  [[nodiscard]] std::vector<arrays::SavedName> find_saved(std::span<const arrays::NameToFind> names,
                                                          std::optional<Failure> local = {});
  /// COLLECTIVE. If it is needed on some rank, reads what nobody has loaded and nobody verified in open. Throws the
  /// same Error on all ranks: corrupt, io. What is read on the prefix is verified as it is loaded.
  void verify_rest(bool is_needed);
  /// Local. Whether another number of ranks saved what is open.
  [[nodiscard]] bool is_of_other_ranks() const noexcept;
  /// Local. What is open; throws bad_state if nothing is. `call` is the caller's name for messages.
  [[nodiscard]] const OpenCheckpoint& checkpoint(std::string_view call) const;
  [[nodiscard]] const comm::Group& group() const noexcept { return uses_.group; }
  [[nodiscard]] std::uint64_t load_buffer_bytes() const noexcept { return uses_.load_buffer_bytes; }
  /// Local. A load that was refused before it came here: as one that failed.
  Status refuse(const Failure& failure);
  /// Local. The checkpoint was not loaded as wanted: close will throw the first such failure on all ranks.
  Status remember(Failure failure);
  /// Local. As remember(), for a failure that all ranks met: the rank that it names remembers it for all.
  void remember_shared(const Failure& failure);
  /// Local. Spec of the region of this name in this rank's container. Throws not_found.
  [[nodiscard]] const format::RegionSpec& saved(std::string_view name) const { return region(name).spec; }
  void close();
  /// Local. After close: that a restore is done, and what was checked. Rank 0 logs it.
  void log_restored(double took_s) const;
  /// Local. This state is loaded: close logs on rank 0 which regions it has no item for, of the lowest rank that has
  /// such. A State that lacks an item begins with whatever was in its place.
  void record_unloaded(const State& state);

 private:
  [[nodiscard]] std::optional<Tag> open_source(const Source& source, double begin_s);
  [[nodiscard]] std::unique_ptr<OpenCheckpoint> make_checkpoint() const;
  [[nodiscard]] bool try_to_pin(const recovery::Opened& opened);
  void confirm_intact();
  void continue_from(const recovery::Opened& opened, bool reads_behind);
  void begin_reading(CheckpointInfo info);
  void share_attributes();
  void count_opened(std::uint64_t fetched_bytes, double begin_s) const;
  void log_opened(const recovery::Opened& opened, double begin_s) const;
  [[nodiscard]] const format::ContainerReader& container() const;
  void copy(const format::StoredRegion& placed, std::span<std::byte> on_host,
            const std::optional<device::Span>& on_device) const;
  [[nodiscard]] std::vector<const format::StoredRegion*> routed_regions(std::string_view name) const;
  void extract(const format::StoredRegion& placed, const Route& route) const;
  void log_unread(const std::optional<std::string>& mine) const;
  void mark_damage(const std::optional<Failure>& mine) const;
  void release();
  [[nodiscard]] const format::StoredRegion& region(std::string_view name) const;
  [[nodiscard]] std::optional<Failure> check_reading(std::string_view call) const;

  Uses uses_;
  mutable std::mutex mutex_;  ///< guards what load and route_in change from several threads
  std::unique_ptr<OpenCheckpoint> open_;
  recovery::SourceRecovery sources_;
  std::optional<CheckpointInfo> info_;  ///< of the checkpoint open now, or opened last
  std::string_view checked_;            ///< of what was closed last, beyond what was loaded
};

}  // namespace kedge::engine

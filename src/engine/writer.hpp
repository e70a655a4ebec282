// The write side: create, save, commit.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "arrays/global_arrays.hpp"
#include "arrays/replicas.hpp"
#include "device/copies.hpp"
#include "device/staging.hpp"
#include "engine/commit_markers.hpp"
#include "engine/lifecycle.hpp"
#include "engine/routed_files.hpp"
#include "engine/store_loss.hpp"
#include "format/container_writer.hpp"
#include "kedge/engine.hpp"
#include "pipeline/pipeline.hpp"
#include "recovery/recovery.hpp"
#include "store/seal_transaction.hpp"

namespace kedge::engine {

/// Facts about a checkpoint that are known before it begins.
struct Expected {
  std::uint64_t bytes = 0;       ///< at least so many will be saved by this rank; 0: not known
  bool is_last = false;          ///< of a job that is about to end; the same on every rank
  bool may_be_snapshot = false;  ///< the same on every rank
  bool is_output = false;        ///< an output (Engine::create_output); likewise
};

class Writer {
 public:
  /// All that is referred to must outlive it.
  struct Uses {
    const comm::Group& group;
    Lifecycle& lifecycle;
    commits::Ledger& ledger;
    CommitMarkers& markers;
    pipeline::BackgroundPause& pause;
    pipeline::Pipeline& pipeline;
    recovery::Recovery& recovery;
    device::Staging& staging;
    device::CopyPool& copies;
    store::NodeStore& store;
    const StoreRecreation& recreation;
    fs::FileSystem& file_system;
    Clock& clock;
    const Log& log;
    const commits::RunIdentity& run;
    unsigned copy_threads = 1;
    std::uint32_t keep = 1;  ///< store.keep
    bool durable = false;    ///< store.durable
    bool snapshots = false;  ///< device.snapshot
  };

  explicit Writer(const Uses& uses) : uses_(uses) {}

  /// All that the ranks of a node expect is admitted before any takes it. The last one waits for the commits that are
  /// under way only if there is no space for it beside them: a flush may take longer than the job has.
  void create(std::string_view tag, const Attributes& attributes, const Expected& expected);
  Status save(std::string_view name, const Region& region, const Placement& placement);
  Routed route_out(std::string_view name, std::uint64_t max_bytes);
  /// Local. A save that was refused before it came here: as one that failed.
  Status refuse(const Failure& failure);
  /// Local. The checkpoint cannot be committed: commit will throw the first such failure on all ranks.
  Status remember(Failure failure);
  struct Committed {
    double blocked_s = 0;    ///< how long the application waited for the checkpoint, from create on
    double in_stages_s = 0;  ///< of that, in stages beyond the seal
    bool is_sealed = true;   ///< false: it is a snapshot
  };
  /// `level`: see Pipeline::submit.
  Committed commit(std::optional<Level> level = {});
  /// How long the application has waited for the checkpoint that is being written; 0 if none is.
  [[nodiscard]] double blocked_s() const noexcept { return checkpoint_ ? checkpoint_->blocked_s : 0; }
  /// Tag of the checkpoint that is being written; empty if none is.
  [[nodiscard]] Tag tag() const { return checkpoint_ ? checkpoint_->commit.tag : Tag(); }
  /// Whether an output is being written.
  [[nodiscard]] bool is_output() const { return checkpoint_ && checkpoint_->commit.is_output; }
  void abandon();
  /// Local. See ForBindings::committed.
  [[nodiscard]] std::span<const std::byte> committed(std::string_view name) const;

 private:
  /// A region that so far is only copied on its device; its place in the container is reserved.
  struct DeviceRegion {
    format::RegionSpec spec;
    device::CopyPool::Copy copy;
  };
  /// The checkpoint that create began.
  struct Checkpoint {
    explicit Checkpoint(const Uses& uses)
        : seal_transaction(uses.group, uses.store, uses.durable),
          routed(uses.store.routed_directories, uses.file_system, uses.log) {}

    CommitHead commit;
    Attributes attributes;
    store::SealTransaction seal_transaction;
    store::UnsealedFile* draft = nullptr;  ///< this rank's container, until it is sealed
    std::unique_ptr<format::ContainerWriter> container;
    RoutedFiles routed;
    std::optional<Failure> first_failure;
    double blocked_s = 0;
    std::atomic<std::uint64_t> copied_since_check = 0;
    std::atomic<std::uint64_t> device_bytes = 0;
    bool takes_snapshots = false;                    ///< of regions on devices
    std::atomic<bool> might_have_snapshots = false;  ///< regions that are on devices only, or where that is not known
    std::atomic<bool> has_new_regions = false;       ///< that the predicted layout has no place for
    std::vector<DeviceRegion> on_device;
  };
  /// A checkpoint that a worker seals.
  class PendingSnapshot;
  /// Why a checkpoint with snapshots is sealed in commit. The largest of all ranks counts.
  enum class SealReason : std::uint64_t { no, host, busy, structure, manifest, failed };

  /// Expected form of the next checkpoint, or output: as the last one of its kind.
  struct Pattern {
    std::shared_ptr<const format::Layout> layout;
    arrays::NameBits shared_names{};  ///< in the layout that was checked last
    std::size_t attributes_room = 0;  ///< of the region for them; it never shrinks, so that places stay
    bool mostly_of_devices = false;
    bool has_replicas = false;  ///< some rank
  };
  [[nodiscard]] Pattern& pattern(bool is_output) noexcept { return is_output ? outputs_ : checkpoints_; }
  /// Pattern for the commit that is being written.
  [[nodiscard]] Pattern& pattern() noexcept { return pattern(checkpoint_->commit.is_output); }
  [[nodiscard]] const Pattern& pattern() const noexcept {
    return checkpoint_->commit.is_output ? outputs_ : checkpoints_;
  }

  [[nodiscard]] CommitHead make_head(std::string_view tag, bool is_output) const;
  [[nodiscard]] std::optional<Failure> try_to_begin(const Expected& expected);
  [[nodiscard]] std::optional<Failure> begin(std::uint64_t expected_bytes);
  [[nodiscard]] std::string describe_kept_commits() const;
  [[nodiscard]] std::optional<device::Span> wait_for_device(std::string_view name, const Region& region,
                                                            std::uint64_t bytes, double& waited_s);
  void copy(const format::RegionSpec& spec, std::span<const std::byte> on_host,
            const std::optional<device::Span>& on_device);
  /// Before bytes go to the container's file.
  void require_present(std::uint64_t bytes);
  void collect_routed_files();
  void save_remaining();
  void finish();
  [[nodiscard]] static std::shared_ptr<const format::Layout> finish_container(
      const Uses& uses, Checkpoint& checkpoint, bool straight, const std::function<void()>& between_regions);
  [[nodiscard]] bool permits_snapshots(const Expected& expected);
  [[nodiscard]] bool take_snapshot(const format::RegionSpec& spec, const device::Span& from);
  [[nodiscard]] bool agree_on_snapshot();
  [[nodiscard]] SealReason find_seal_reason() const;
  void log_seal_reason(SealReason why);
  [[nodiscard]] Committed commit_snapshot(double begin_s);
  void seal();
  void save_attributes();
  void check_global_arrays(const std::shared_ptr<const format::Layout>& layout);
  [[nodiscard]] static arrays::Replicas replicas_of(const Checkpoint& checkpoint, const format::Layout& layout);
  void abort_if_failed(const std::optional<Failure>& failure);
  void abort_checkpoint();
  [[nodiscard]] std::optional<Failure> check_writing(std::string_view call) const;

  Uses uses_;
  std::mutex mutex_;  ///< guards what save and route_out change from several threads
  std::unique_ptr<Checkpoint> checkpoint_;
  Pattern checkpoints_;
  Pattern outputs_;
  std::optional<Id128> last_;                          ///< the last commit, until the next create
  std::shared_ptr<const format::Layout> last_layout_;  ///< its container's
  bool said_no_memory_ = false;                        ///< for snapshots, on this rank
  std::set<SealReason> logged_in_commit_;              ///< rank 0's
};

}  // namespace kedge::engine

// A stage takes a sealed commit to one level.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "comm/group.hpp"
#include "kedge/error.hpp"
#include "kedge/types.hpp"
#include "persist/manifest_builder.hpp"
#include "store/pin.hpp"

namespace kedge::pipeline {

/// A commit and this process's container, which stays unchanged while a stage runs.
struct CommitFiles {
  CommitHead commit;
  store::Pin container;
  std::optional<persist::Manifest> manifest = {};  ///< if it will be flushed
  bool in_background = false;                      ///< prepare() is called in the background
};

/// A step for sealed commits. The stage implements it; the pipeline decides when and on which thread it runs, and tells
/// the observers. New stages are added to the list given to the pipeline. One that reaches no level needs no other
/// change (mpi_tests/engine/pipeline/third_stage_test.cpp); a new level is also known to types.hpp, stage_costs.hpp,
/// executor.cpp, job_end.cpp, known_commits.hpp and the bindings.
class Stage {
 public:
  Stage() = default;
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;
  virtual ~Stage() = default;

  // Properties. Local, and equal on every rank.

  /// Returns the name for messages, e.g. "flush".
  [[nodiscard]] virtual std::string_view name() const noexcept = 0;
  /// Returns the level that a successful run() gives a commit; none leaves the level unchanged.
  [[nodiscard]] virtual Level level() const noexcept = 0;
  /// Whether commits of this run can reach the level.
  [[nodiscard]] virtual bool is_possible() const noexcept { return true; }
  /// Whether it is due for outputs: never, if it is scheduled for checkpoints, or always.
  enum class ForOutputs : std::uint8_t { never, as_checkpoints, always };
  [[nodiscard]] virtual ForOutputs for_outputs() const noexcept { return ForOutputs::never; }
  /// Whether it needs space in the stores: then it runs before space is taken for the next container.
  [[nodiscard]] virtual bool needs_store_space() const noexcept { return false; }
  /// Returns the number of bytes that a rank sends per byte of its container.
  [[nodiscard]] virtual double sent_bytes_per_byte() const noexcept { return 0; }
  /// Returns the maximum number of retries in the background after this failure.
  [[nodiscard]] virtual std::uint64_t retries_max(const Failure& /*failure*/) const { return 0; }
  /// Returns the log's message about a failure after `tries`.
  [[nodiscard]] virtual std::string failure_warning(const CommitHead& commit, const Failure& failure,
                                                    std::uint64_t tries) const = 0;

  // Actions.

  /// COLLECTIVE. Runs in the application's thread if needs_application(), which HDF5 requires; otherwise perhaps in the
  /// worker, like run(). Returns the failure, alike on all ranks.
  [[nodiscard]] virtual std::optional<Failure> prepare(const comm::Group& /*group*/, CommitFiles& /*files*/) {
    return std::nullopt;
  }
  /// Local. Whether prepare() needs the application's thread for these regions, as far as this rank knows.
  [[nodiscard]] virtual bool needs_application(const comm::Group& /*group*/,
                                               std::span<const format::StoredRegion> /*regions*/,
                                               const Attributes& /*attributes*/) const {
    return false;
  }
  /// COLLECTIVE. Returns the failure, alike on all ranks; the commit is then unchanged, except that `busy` may follow a
  /// reached level. Throws only what ends communication.
  [[nodiscard]] virtual std::optional<Failure> run(const comm::Group& group, const CommitFiles& files) = 0;
  /// COLLECTIVE. Work after a successful run() that nobody waits for. Returns only `busy` as a failure.
  [[nodiscard]] virtual std::optional<Failure> clean_up(const comm::Group& /*group*/) { return std::nullopt; }
};

}  // namespace kedge::pipeline

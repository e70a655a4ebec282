// What takes a commit to a higher level.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "comm/group.hpp"
#include "kedge/error.hpp"
#include "kedge/types.hpp"
#include "persist/manifest_builder.hpp"
#include "store/pin.hpp"

namespace kedge::pipeline {

/// A commit whose containers are not sealed yet: what is left to do is here.
class PendingSeal {
 public:
  PendingSeal() = default;
  PendingSeal(const PendingSeal&) = delete;
  PendingSeal& operator=(const PendingSeal&) = delete;
  virtual ~PendingSeal() = default;
  /// COLLECTIVE, once. The commit is local then; or the failure, the same on every rank, and nothing is left of it.
  /// Throws only what ends communication.
  [[nodiscard]] virtual std::optional<Failure> seal(const comm::Group& group) = 0;
};

/// What a commit is in bytes.
struct CommitBytes {
  std::uint64_t own = 0;    ///< of this rank's container
  std::uint64_t total = 0;  ///< of all; 0: not known
};

/// A commit, and this process's container of it, which stays as it is while a stage runs.
struct CommitFiles {
  CommitHead commit;
  store::Pin container;
  std::optional<persist::Manifest> manifest = {};  ///< if it is to be flushed
  bool in_background = false;                      ///< prepare() is called in the background, too
};

/// One step beyond level local. Knows how to take it, not when: that is the pipeline's.
class Stage {
 public:
  Stage() = default;
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;
  virtual ~Stage() = default;

  /// The level of a commit for which run() succeeded.
  [[nodiscard]] virtual Level reaches() const noexcept = 0;
  /// COLLECTIVE. By the application's thread if it needs HDF5 (needs_application()); else it may run in the worker, as
  /// run() may. The failure, the same on every rank.
  [[nodiscard]] virtual std::optional<Failure> prepare(const comm::Group& /*group*/, CommitFiles& /*files*/) {
    return std::nullopt;
  }
  /// Local. Whether prepare() needs the application's thread for a commit of these regions, as far as this rank sees.
  [[nodiscard]] virtual bool needs_application(const comm::Group& /*group*/,
                                               std::span<const format::PlacedRegion> /*regions*/,
                                               const Attributes& /*attributes*/) const {
    return false;
  }
  /// COLLECTIVE. The failure, the same on every rank: the commit is then as it was, but for `busy`, which may come
  /// after it has reached the level. Throws only what ends communication.
  [[nodiscard]] virtual std::optional<Failure> run(const comm::Group& group, const CommitFiles& files) = 0;
  /// COLLECTIVE. What is to be done after a run() that succeeded, and nobody needs to wait for. Only `busy` is a
  /// failure.
  [[nodiscard]] virtual std::optional<Failure> tidy(const comm::Group& /*group*/) { return std::nullopt; }
};

}  // namespace kedge::pipeline

// What takes a commit to a higher level.
#pragma once

#include <cstdint>
#include <optional>

#include "comm/group.hpp"
#include "kedge/error.hpp"
#include "kedge/types.hpp"
#include "persist/manifest_builder.hpp"
#include "store/pin.hpp"

namespace kedge::pipeline {

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
  /// COLLECTIVE. What must be done by the application's thread, as all that uses HDF5; run() may be another's. The
  /// failure, the same on every rank.
  [[nodiscard]] virtual std::optional<Failure> prepare(const comm::Group& /*group*/, CommitFiles& /*files*/) {
    return std::nullopt;
  }
  /// COLLECTIVE. The failure, the same on every rank: the commit is then as it was, but for `busy`, which may come
  /// after it has reached the level. Throws only what ends communication.
  [[nodiscard]] virtual std::optional<Failure> run(const comm::Group& group, const CommitFiles& files) = 0;
  /// COLLECTIVE. What is to be done after a run() that succeeded, and nobody needs to wait for. Only `busy` is a
  /// failure.
  [[nodiscard]] virtual std::optional<Failure> tidy(const comm::Group& /*group*/) { return std::nullopt; }
};

}  // namespace kedge::pipeline

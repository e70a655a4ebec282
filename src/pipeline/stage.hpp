// What takes a commit one step further than the stores of the ranks that made it.
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

/// A commit, and this process's container of it, which stays as it is while a stage runs.
struct CommitFiles {
  CommitHead commit;
  store::Pin container;
  std::optional<persist::Manifest> manifest = {};  ///< if it is to be flushed
  bool in_background = false;                      ///< prepare() is called in the background, too
};

/// A step that commits go through after they are sealed. A stage knows how it is taken; the pipeline decides when, on
/// which thread, and tells the observers what came of it. A new stage is added to the list that the pipeline is made
/// with; nothing else knows the stages one by one.
class Stage {
 public:
  Stage() = default;
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;
  virtual ~Stage() = default;

  // What it is. Local, and the same on every rank.

  /// For messages: "flush".
  [[nodiscard]] virtual std::string_view name() const noexcept = 0;
  /// The level of a commit for which run() succeeded; none: its level stays as it was.
  [[nodiscard]] virtual Level reaches() const noexcept = 0;
  /// Whether any commit of this run can get there.
  [[nodiscard]] virtual bool is_possible() const noexcept { return true; }
  /// Whether it is due for outputs: never; if it is due for checkpoints by itself; always.
  enum class ForOutputs : std::uint8_t { never, as_checkpoints, always };
  [[nodiscard]] virtual ForOutputs for_outputs() const noexcept { return ForOutputs::never; }
  /// Whether it needs space in the stores: then it comes before space is taken for the next container.
  [[nodiscard]] virtual bool needs_store_space() const noexcept { return false; }
  /// How many times its container's bytes a rank sends to others.
  [[nodiscard]] virtual double sent_share() const noexcept { return 0; }
  /// How often it is tried again in the background after this failure.
  [[nodiscard]] virtual std::uint64_t retries(const Failure& /*failure*/) const { return 0; }
  /// What the log says of a failure after so many tries.
  [[nodiscard]] virtual std::string warning(const CommitHead& commit, const Failure& failure,
                                            std::uint64_t tries) const = 0;

  // What it does.

  /// COLLECTIVE. By the application's thread if it needs HDF5 (needs_application()); else it may run in the worker, as
  /// run() may. The failure, the same on every rank.
  [[nodiscard]] virtual std::optional<Failure> prepare(const comm::Group& /*group*/, CommitFiles& /*files*/) {
    return std::nullopt;
  }
  /// Local. Whether prepare() needs the application's thread for a commit of these regions, as far as this rank sees.
  [[nodiscard]] virtual bool needs_application(const comm::Group& /*group*/,
                                               std::span<const format::StoredRegion> /*regions*/,
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

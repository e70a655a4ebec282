// What takes a commit to a higher level.
#pragma once

#include <optional>

#include "comm/group.hpp"
#include "kedge/error.hpp"
#include "kedge/types.hpp"
#include "store/pin.hpp"

namespace kedge::pipeline {

/// A commit, and this process's container of it, which stays as it is while a stage runs.
struct CommitFiles {
  CommitHead commit;
  store::Pin container;
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
  /// COLLECTIVE. The failure, the same on every rank: the commit is then as it was, but for `busy`, which may come
  /// after it has reached the level. Throws only what ends communication.
  [[nodiscard]] virtual std::optional<Failure> run(const comm::Group& group, const CommitFiles& files) = 0;
};

}  // namespace kedge::pipeline

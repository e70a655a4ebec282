// A commit on its way through the stages.
#pragma once

#include <memory>
#include <optional>

#include "comm/group.hpp"
#include "pipeline/progress.hpp"
#include "pipeline/stage.hpp"

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

struct Job {
  CommitProgress progress;
  CommitFiles files;
  std::unique_ptr<PendingSeal> unsealed = {};  ///< if sealing comes before the stages
};

}  // namespace kedge::pipeline

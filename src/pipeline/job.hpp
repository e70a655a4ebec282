// A commit in the executor.
#pragma once

#include <memory>
#include <optional>

#include "comm/group.hpp"
#include "pipeline/progress.hpp"
#include "pipeline/stage.hpp"

namespace kedge::pipeline {

/// A commit whose containers must still be sealed.
class PendingSeal {
 public:
  PendingSeal() = default;
  PendingSeal(const PendingSeal&) = delete;
  PendingSeal& operator=(const PendingSeal&) = delete;
  virtual ~PendingSeal() = default;
  /// COLLECTIVE, once. Makes the commit local; or returns the failure, alike on all ranks, and nothing remains of it.
  /// Throws only what ends communication.
  [[nodiscard]] virtual std::optional<Failure> seal(const comm::Group& group) = 0;
};

struct Job {
  CommitProgress progress;
  CommitFiles files;
  std::unique_ptr<PendingSeal> unsealed = {};  ///< to be sealed before the stages
};

}  // namespace kedge::pipeline

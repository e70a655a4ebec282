// Writes the log's lines about commits.
#pragma once

#include <mutex>
#include <optional>
#include <string>

#include "base/log.hpp"
#include "commits/ledger.hpp"
#include "kedge/error.hpp"
#include "kedge/options.hpp"
#include "kedge/types.hpp"
#include "pipeline/progress.hpp"
#include "pipeline/stage_list.hpp"

namespace kedge::pipeline {

/// Pure. Whether a later flush may succeed: a full filesystem, a server's error.
[[nodiscard]] bool is_transient(const Failure& failure);

/// Thread-safe, per rank. Failures of one commit alone are always news.
class FlushFailures {
 public:
  /// Whether this failure must be logged; false if it was already logged, for this commit or an earlier one.
  [[nodiscard]] bool should_log(const Failure& failure);
  /// A flush succeeded. Returns the line to log if earlier ones failed.
  [[nodiscard]] std::optional<std::string> on_success(const CommitHead& commit);

 private:
  struct State {
    ErrorCode code = ErrorCode::io;
    int system_errno = 0;
    bool operator==(const State&) const = default;
  };

  std::mutex mutex_;
  std::optional<State> last_failure_;
};

/// Logs on rank 0 only. Thread-safe.
class CommitLog final : public CommitObserver {
 public:
  /// `run`: the run's name if lines should contain it, otherwise empty. The referenced objects must outlive it.
  CommitLog(bool is_root, const commits::Ledger& ledger, const StageList& stages, Scheme scheme, std::string run,
            Log log);

  void on_snapshot(const CommitProgress& progress) override;
  void on_snapshot_lost(const CommitProgress& progress, const Failure& failure) override;
  void on_level_reached(const CommitProgress& progress, const StageProgress& stage) override;
  void on_stage_failed(const CommitProgress& progress, const StageProgress& stage) override;
  void on_finished(const CommitProgress& progress) override;
  /// A commit was submitted to the worker.
  void log_submitted(const CommitProgress& progress);

 private:
  [[nodiscard]] std::string commit_name(const CommitHead& commit) const;
  [[nodiscard]] std::string committed_line(const CommitProgress& progress) const;

  bool is_root_;
  const commits::Ledger& ledger_;
  const StageList& stages_;
  Scheme scheme_;
  std::string run_;
  Log log_;
  FlushFailures flush_failures_;
};

}  // namespace kedge::pipeline

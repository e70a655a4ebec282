// Writes the log's lines about commits.
#pragma once

#include <string>

#include "base/log.hpp"
#include "commits/ledger.hpp"
#include "kedge/options.hpp"
#include "pipeline/flush_failures.hpp"
#include "pipeline/progress.hpp"
#include "pipeline/stage_list.hpp"

namespace kedge::pipeline {

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
  void handed_over(const CommitProgress& progress);

 private:
  [[nodiscard]] std::string named(const CommitHead& commit) const;
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

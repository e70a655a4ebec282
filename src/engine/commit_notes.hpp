// That commits of the run exist, noted where a later start looks for it.
#pragma once

#include <utility>

#include "base/log.hpp"
#include "comm/group.hpp"
#include "kedge/types.hpp"
#include "persist/run_records.hpp"
#include "store/node_records.hpp"

namespace kedge::engine {

/// Who says that commits of the run exist.
struct NotedCommits {
  bool on_prefix = false;        ///< the same on every rank
  bool in_store = false;         ///< this rank's
  bool fingerprint_done = true;  ///< recorded, or there is none; the same on every rank
};

/// One note on the prefix and one in every store: the loss of either does not let a start begin from zero.
class CommitNotes {
 public:
  /// `run_records` is rank 0's, null elsewhere; it and `node_records` must outlive this. `noted` is what the start
  /// found. Rank 0's `fingerprint`, unless it is empty, is recorded on the prefix with the first commit.
  CommitNotes(comm::Group group, persist::RunRecords* run_records, store::NodeRecords& node_records,
              const Id128& run_id, const NotedCommits& noted, std::string fingerprint, const Log& log)
      : group_(std::move(group)),
        run_records_(run_records),
        node_records_(node_records),
        run_id_(run_id),
        noted_(noted),
        fingerprint_(std::move(fingerprint)),
        log_(log) {}

  /// COLLECTIVE. Before commit or open return a commit anywhere. A note that cannot be made is logged, and the next
  /// commit or open tries again.
  void note(const Id128& commit_id);
  /// COLLECTIVE. The commits were removed on purpose: the next start begins from zero. Throws the same Error on all
  /// ranks.
  void forget();

 private:
  comm::Group group_;
  persist::RunRecords* run_records_;
  store::NodeRecords& node_records_;
  Id128 run_id_;
  NotedCommits noted_;
  std::string fingerprint_;
  const Log& log_;
};

}  // namespace kedge::engine

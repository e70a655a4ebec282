// That commits of the run exist, noted where a later start looks for it.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "base/log.hpp"
#include "comm/group.hpp"
#include "kedge/types.hpp"
#include "persist/prefix_markers.hpp"
#include "persist/run_start.hpp"
#include "start/start.hpp"
#include "store/store_record_files.hpp"

namespace kedge::engine {

/// One note on the prefix and one in every store: the loss of either does not let a start begin from zero.
class CommitMarkers {
 public:
  /// Both are rank 0's, null elsewhere.
  struct OnPrefix {
    const persist::RunStart* start;
    const persist::PrefixMarkers* markers;
  };
  /// `on_prefix` and `store_records` must outlive this. `noted` is what the start found.
  CommitMarkers(comm::Group group, const OnPrefix& on_prefix, store::StoreRecordFiles& store_records,
                const Id128& run_id, const start::CommitEvidence& noted, const Log& log)
      : group_(std::move(group)),
        on_prefix_(on_prefix),
        node_records_(store_records),
        run_id_(run_id),
        found_(noted),
        log_(log) {}

  /// COLLECTIVE. Before commit or open return a commit anywhere. A note that cannot be made is logged, on the prefix
  /// once for each reason, and the next commit or open tries again. Throws busy on all ranks if a later start of the
  /// run has begun.
  void mark(const Id128& commit_id);
  /// Local. The store was removed and recreated: the note in it is written anew, at the latest by the next commit or
  /// open.
  void store_lost();
  /// Local. A rank of this node found damage while it loaded, in this start or one before, and no commit was made
  /// since: what is opened may be damaged.
  [[nodiscard]] bool is_marked_damaged();
  /// Local. `what` is for people who look into the store.
  void mark_damage(const std::string& what);
  /// COLLECTIVE. Notes a commit that was made, as mark() does; a commit that was found damaged is no longer the newest.
  void mark_committed(const Id128& commit_id);
  /// COLLECTIVE. The commits were removed on purpose: the next start begins from zero. Throws the same Error on all
  /// ranks.
  void clear_cache();

 private:
  void record_store();

  comm::Group group_;
  OnPrefix on_prefix_;
  store::StoreRecordFiles& node_records_;
  Id128 run_id_;
  start::CommitEvidence found_;
  std::optional<bool> damaged_;    ///< as the store says; nothing: nobody has looked
  std::optional<ErrorCode> said_;  ///< why the prefix could not note it, as far as the log says; rank 0's
  const Log& log_;
};

}  // namespace kedge::engine

// The records in a store: which run it belongs to, that a commit was made, that a flush failed, that a checkpoint was
// found damaged.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fs/file_system.hpp"
#include "kedge/types.hpp"
#include "store/failed_flush.hpp"
#include "store/location.hpp"
#include "store/store_record.hpp"

namespace kedge::store {

/// A store of a run of the name that was asked for.
struct NamedStore {
  std::string directory;
  StoreRecord record;
  bool has_commits = false;  ///< checkpoints were made there, or outputs are
};

/// How to treat a store whose record cannot be read: it may be the one that is looked for.
enum class OnUnreadable { refused, skipped };

/// Local, reads only. This user's stores below `root` that belong to a run of this name, whichever it is; on this node,
/// if several share the root. Directories without a valid record, or whose name does not match it, are left out. Throws
/// Error{io} if a record cannot be read and `unreadable` says so.
[[nodiscard]] std::vector<NamedStore> find_stores_of_run(fs::FileSystem& file_system, const std::string& root,
                                                         const LocationOptions& location_options,
                                                         const std::string& run,
                                                         OnUnreadable unreadable = OnUnreadable::refused);

/// Small files that all ranks of the node share; each is replaced as a whole. The first two stand in for the records on
/// the prefix if those are lost. All calls are local and throw Error{io | no_space}.
class StoreRecords {
 public:
  StoreRecords(std::shared_ptr<fs::FileSystem> file_system, Location location, LogicalRank writer);

  /// The store's.
  [[nodiscard]] const std::string& directory() const noexcept { return location_.directory; }

  /// Whether the record says this run and this place, on whatever prefix.
  [[nodiscard]] bool is_owned_by(const Id128& run_id, const Id128& prefix_id);
  /// Records whose the store is. Nothing is written if the record says so already. Paths by which earlier starts were
  /// given the prefix stay in it, at most a few.
  void write_owner(StoreRecord record);
  /// Adds to the record the paths by which this start was given the prefix, and changes nothing else of it.
  void add_prefix_paths(const StoreRecord& record);

  /// A commit of this run has returned at least once, and was not removed on purpose since.
  [[nodiscard]] bool has_commit_marker(const Id128& run_id);
  void mark_commit(const Id128& run_id);
  void remove_commit_marker();

  /// Record of the run's newest commit of which the flush failed; rank 0's store has it.
  [[nodiscard]] std::optional<FailedFlush> failed_flush();
  void record_failed_flush(const FailedFlush& failed);
  void remove_failed_flush();

  /// A rank of this node found a checkpoint damaged while it loaded it, and nobody has read every byte since.
  [[nodiscard]] bool is_marked_damaged();
  /// `what` is for people who look into the file.
  void note_damage(const std::string& what);
  void clear_damaged();

 private:
  void write(std::string_view name, const std::string& text);
  void remove(std::string_view name);

  std::shared_ptr<fs::FileSystem> file_system_;
  Location location_;
  LogicalRank writer_;
};

}  // namespace kedge::store

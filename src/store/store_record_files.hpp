// The records in a store: its owner, that a commit was made, failed flushes, damaged checkpoints.
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

/// A store of the requested run.
struct NamedStore {
  std::string directory;
  StoreRecord record;
  bool has_commits = false;  ///< has checkpoints or outputs
};

/// Treatment of a store whose record cannot be read and which may be the requested one.
enum class OnUnreadable { fail, skip };

/// Local, reads only. This user's stores below `root` of any run with this name; on this node only, if several share
/// the root. Skips directories whose record is missing, invalid or contradicts the name. Throws Error{io} if a record
/// cannot be read and `unreadable` is refused.
[[nodiscard]] std::vector<NamedStore> find_stores_of_run(fs::FileSystem& file_system, const std::string& root,
                                                         const LocationOptions& location_options,
                                                         const std::string& run,
                                                         OnUnreadable unreadable = OnUnreadable::fail);

/// Small files shared by all ranks of the node; each write replaces a whole file. Owner record and commit marker
/// replace the prefix's records if those are lost. All calls are local and throw Error{io | no_space}.
class StoreRecordFiles {
 public:
  StoreRecordFiles(std::shared_ptr<fs::FileSystem> file_system, StoreLocation location, LogicalRank writer);

  /// Returns the store's directory.
  [[nodiscard]] const std::string& directory() const noexcept { return location_.directory; }

  /// Whether the record has this run and prefix id.
  [[nodiscard]] bool is_owned_by(const Id128& run_id, const Id128& prefix_id);
  /// Records the owner, unless the record has it already. A few of the earlier starts' paths of the prefix are kept.
  void write_owner(StoreRecord record);
  /// Adds this start's paths of the prefix to the record.
  void add_prefix_paths(const StoreRecord& record);

  /// Whether a commit of this run has returned, and its commits were not removed on purpose since.
  [[nodiscard]] bool has_commit_marker(const Id128& run_id);
  void write_commit_marker(const Id128& run_id);
  void remove_commit_marker();

  /// The record of the newest commit whose flush failed, in rank 0's store.
  [[nodiscard]] std::optional<FailedFlush> failed_flush();
  void record_failed_flush(const FailedFlush& failed);
  void remove_failed_flush();

  /// Whether a rank of this node found damage while loading a checkpoint, and its bytes were not verified since.
  [[nodiscard]] bool has_damage_marker();
  /// Marks that this store has a damaged checkpoint. `description` is for people who read the file.
  void write_damage_marker(const std::string& description);
  void remove_damage_marker();

 private:
  void write(std::string_view name, const std::string& text);
  void remove(std::string_view name);

  std::shared_ptr<fs::FileSystem> file_system_;
  StoreLocation location_;
  LogicalRank writer_rank_;
};

}  // namespace kedge::store

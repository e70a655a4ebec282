// What the run's directory on a node says of the run besides its containers: whose it is, and that a commit was made.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "fs/file_system.hpp"
#include "kedge/types.hpp"
#include "store/location.hpp"

namespace kedge::store {

/// What the directory of a store says of whose it is.
struct StoreRecord {
  Id128 run_id;  ///< none if it does not say
  std::string prefix;
  bool operator==(const StoreRecord&) const = default;
};

/// Local. Of the store in `directory`. Throws Error{io}.
[[nodiscard]] StoreRecord read_store_record(fs::FileSystem& file_system, const std::string& directory);

/// A store of some run of a name.
struct StoreOfName {
  std::string directory;
  StoreRecord record;
  bool has_commits = false;
};

/// Local, reads only. This user's stores below `root` that belong to a run of this name, whichever it is; on this node,
/// if several share the root. Those that do not say whose they are, or are called otherwise, are left out.
[[nodiscard]] std::vector<StoreOfName> stores_of_name(fs::FileSystem& file_system, const std::string& root,
                                                      const Surroundings& surroundings, const std::string& run);

/// Two small files that all ranks of the node share; each is replaced as a whole. They stand in for the records on
/// the prefix if those are lost. All calls are local and throw Error{io | no_space}.
class NodeRecords {
 public:
  NodeRecords(std::shared_ptr<fs::FileSystem> file_system, Location location, LogicalRank writer);

  /// Says whose the directory is: the run, and the prefix after which it is named. Nothing is written if it says so.
  void write_owner(const Id128& run_id);

  /// A commit of this run has returned at least once, and was not removed on purpose since.
  [[nodiscard]] bool tells_of_commit(const Id128& run_id);
  void note_commit(const Id128& run_id);
  void forget_commit();

 private:
  void write(std::string_view name, const std::string& text);

  std::shared_ptr<fs::FileSystem> file_system_;
  Location location_;
  LogicalRank writer_;
};

}  // namespace kedge::store

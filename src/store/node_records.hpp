// What the run's directory on a node says of the run besides its containers: whose it is, and that a commit was made.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "fs/file_system.hpp"
#include "kedge/types.hpp"
#include "store/location.hpp"

namespace kedge::store {

/// Two small files that all ranks of the node share; each is replaced as a whole. They stand in for the records on
/// the prefix if those are lost. All calls are local and throw Error{io | no_space}.
class NodeRecords {
 public:
  NodeRecords(std::shared_ptr<fs::FileSystem> file_system, Location location, LogicalRank writer);

  /// The run's UUID; none if the directory is new.
  [[nodiscard]] Id128 run_id();
  void write_run_id(const Id128& run_id);

  /// A commit of this run has returned at least once, and was not removed on purpose since.
  [[nodiscard]] bool tells_of_commit(const Id128& run_id);
  void note_commit(const Id128& run_id);
  void forget_commit();

 private:
  [[nodiscard]] Id128 read(std::string_view name);
  void write(std::string_view name, const Id128& id);

  std::shared_ptr<fs::FileSystem> file_system_;
  Location location_;
  LogicalRank writer_;
};

}  // namespace kedge::store

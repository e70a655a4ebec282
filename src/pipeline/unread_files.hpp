// Reads, behind the application, the files of commits that an open had no need to read.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <vector>

#include "kedge/error.hpp"
#include "kedge/types.hpp"
#include "store/node_store.hpp"

namespace kedge::pipeline {

/// What an open has left to be read behind the application.
struct Unread {
  bool others = false;     ///< parity of what was opened, and the other commits in the stores
  bool container = false;  ///< of what was opened
};

/// A commit of which not every byte was read.
struct UnreadCommit {
  CommitHead commit;
  Id128 protection_id;        ///< the one of which files are to be read; none: all files of the commit
  bool is_container = false;  ///< nothing older is given up before these were read
};

/// What came of reading a commit's files.
struct ReadFiles {
  std::vector<Failure> damaged;  ///< files that are not what was written, or cannot be read
  bool containers = false;       ///< some of these are
  bool some_left = false;

  [[nodiscard]] std::optional<Failure> first_failure() const {
    return damaged.empty() ? std::nullopt : std::optional(damaged.front());
  }
};

/// Reads what this process has of one commit after the other, file by file, while others use the store. Local.
class UnreadFiles {
 public:
  /// Asked between pieces of a file: whether to leave it for another time.
  using ShouldYield = std::function<bool()>;

  explicit UnreadFiles(store::NodeStore& store) : store_(store) {}

  /// What is still to be read of it.
  [[nodiscard]] std::uint64_t bytes_left(const UnreadCommit& what);
  /// Every byte of the files of this commit that were not read yet, until it has to give way: the file that is being
  /// read then is begun anew the next time. What is damaged counts no more (NodeStore::reject); what was retired and is
  /// gone is no damage.
  [[nodiscard]] ReadFiles read(const UnreadCommit& what, const ShouldYield& should_yield);
  /// The next is another commit.
  void forget() { read_.clear(); }

 private:
  [[nodiscard]] std::vector<store::PinnableFile> files_left(const UnreadCommit& what);
  [[nodiscard]] std::optional<Failure> read_whole(const store::PinnableFile& file, const CommitHead& commit,
                                                  const ShouldYield& should_yield);

  store::NodeStore& store_;
  std::set<store::PinnableFile> read_;
};

}  // namespace kedge::pipeline

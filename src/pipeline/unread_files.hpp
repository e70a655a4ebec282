// Reads, in the background, files that an open did not need to verify.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <vector>

#include "kedge/error.hpp"
#include "kedge/types.hpp"
#include "store/stored_files.hpp"

namespace kedge::pipeline {

/// What an open has left unread.
struct Unread {
  bool others = false;     ///< parity of the opened commit, and other commits in the stores
  bool container = false;  ///< the opened commit's container
};

/// A commit with unread files.
struct UnreadCommit {
  CommitHead commit;
  Id128 protection_id;        ///< the protection to read; none: all files of the commit
  bool is_container = false;  ///< nothing older may go before its container was read
};

/// Result of reading a commit's files.
struct ReadFiles {
  std::vector<Failure> damaged;  ///< damaged or unreadable files
  bool containers = false;       ///< containers are among them
  bool some_left = false;

  [[nodiscard]] std::optional<Failure> first_failure() const {
    return damaged.empty() ? std::nullopt : std::optional(damaged.front());
  }
};

/// Reads this process's files of one commit after the other, while other threads use the store. Local.
class UnreadFiles {
 public:
  /// Checked between pieces of a file: whether to stop for now.
  using ShouldYield = std::function<bool()>;

  explicit UnreadFiles(store::StoredFiles& files) : stored_(files) {}

  /// Unread bytes of the commit.
  [[nodiscard]] std::uint64_t bytes_left(const UnreadCommit& what);
  /// Reads this commit's unread files until it should yield; a file that was interrupted is read again from its start.
  /// Damaged files are rejected (StoredFiles::reject); files that were retired meanwhile are no damage.
  [[nodiscard]] ReadFiles read(const UnreadCommit& what, const ShouldYield& should_yield);
  /// Resets the state for another commit.
  void forget() { read_.clear(); }

 private:
  [[nodiscard]] std::vector<store::PinnableFile> files_left(const UnreadCommit& what);
  [[nodiscard]] std::optional<Failure> read_whole(const store::PinnableFile& file, const CommitHead& commit,
                                                  const ShouldYield& should_yield);

  store::StoredFiles& stored_;
  std::set<store::PinnableFile> read_;
};

}  // namespace kedge::pipeline

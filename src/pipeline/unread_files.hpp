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

/// Files that an open has left unread.
struct UnreadWork {
  bool others = false;     ///< parity of the opened commit, and other commits in the stores
  bool container = false;  ///< the opened commit's container
};

/// A commit with unread files.
struct UnreadCommit {
  CommitHead commit;
  Id128 protection_id;        ///< the protection to read; none: all files of the commit
  bool is_container = false;  ///< nothing older may go before its container was read
  bool is_parity = false;     ///< only its parity is to be read
};

/// Result of reading a commit's files.
struct ReadResult {
  std::vector<Failure> failures;       ///< damaged or unreadable files
  bool has_damaged_container = false;  ///< containers are among them
  bool has_more = false;               ///< files are left, because it had to yield

  [[nodiscard]] std::optional<Failure> first_failure() const {
    return failures.empty() ? std::nullopt : std::optional(failures.front());
  }
};

/// Reads this process's files of one commit after the other, while other threads use the store. Local.
class UnreadFilesReader {
 public:
  /// Checked between pieces of a file: whether to stop for now.
  using ShouldYield = std::function<bool()>;

  explicit UnreadFilesReader(store::StoredFiles& files) : stored_files_(files) {}

  /// Returns the number of unread bytes of the commit.
  [[nodiscard]] std::uint64_t unread_bytes(const UnreadCommit& unread);
  /// Reads this commit's unread files until it should yield; a file that was interrupted is read again from its start.
  /// Damaged files are rejected (StoredFiles::reject_file); files that were retired meanwhile are no damage.
  [[nodiscard]] ReadResult read_commit(const UnreadCommit& unread, const ShouldYield& should_yield);
  /// Forgets the files that were read, for another commit.
  void reset() { read_files_.clear(); }

 private:
  [[nodiscard]] std::vector<store::PinnableFile> list_unread(const UnreadCommit& unread);
  [[nodiscard]] std::optional<Failure> read_whole(const store::PinnableFile& file, const CommitHead& commit,
                                                  const ShouldYield& should_yield);

  store::StoredFiles& stored_files_;
  std::set<store::PinnableFile> read_files_;
};

}  // namespace kedge::pipeline

// Interface of storage that outlives the job: commits are published there whole, or not at all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "fs/choose_io.hpp"
#include "fs/file_system.hpp"
#include "fs/rate_limiter.hpp"
#include "fs/tree.hpp"
#include "kedge/types.hpp"
#include "persist/open_container.hpp"
#include "persist/tags.hpp"

namespace kedge::persist {

/// A container's bytes to be written.
struct ContainerContent {
  fs::ByteAccess& bytes;
  std::uint64_t size_bytes = 0;
  std::span<const std::byte> mapped = {};  ///< the bytes in memory; empty if they are not mapped
  fs::RateLimiter* pace = nullptr;         ///< limits the rate of writing; null: no limit
};

/// Plain files to be written by write_plain_file, over all ranks of a commit.
struct PlainFileTotals {
  std::uint64_t file_count = 0;
  std::uint64_t total_bytes = 0;
};

/// Files of a commit that was retracted, or that was never completed.
struct Leftover {
  std::string name;
  std::uint32_t ranks = 0;  ///< only ranks below this may have containers
  bool operator==(const Leftover&) const = default;
};

struct Leftovers {
  std::vector<Leftover> commits;
  std::vector<std::string> problems;  ///< why something could not be checked
};

/// Finds and reads commits, on any rank. The prefix contains commits, each under a name (TagEntry::directory) with the
/// containers of its ranks and a manifest. The commit exists exactly as long as its manifest does. These three
/// interfaces do not say how: a filesystem renames and syncs, an object store puts and deletes. All calls are local,
/// and throw Error{io} when the prefix cannot be reached.
class PrefixReader {
 public:
  PrefixReader() = default;
  PrefixReader(const PrefixReader&) = delete;
  PrefixReader& operator=(const PrefixReader&) = delete;
  virtual ~PrefixReader() = default;

  /// Returns the prefix's name in messages.
  [[nodiscard]] virtual const std::string& location() const noexcept = 0;
  /// Returns the commits, newest first, and unusable tag directories. Commits may come from a cache, which
  /// read_commit() does not trust. Throws also not_found.
  [[nodiscard]] virtual TagList list_commits() = 0;
  /// Reads and checks the head of the manifest of that name. Throws also not_found (no manifest), corrupt, mismatch
  /// (newer format).
  [[nodiscard]] virtual TagEntry read_commit(const std::string& name) = 0;
  /// Whether this rank sees a manifest of that name; does not read it.
  [[nodiscard]] virtual bool is_published(const std::string& name) = 0;
  /// Whether this user put it there: otherwise it is not of this run, whatever it says.
  [[nodiscard]] virtual bool is_own(const TagEntry& entry) = 0;
  /// Throws io with the remedy if persistent.trust does not permit to use the commit.
  virtual void require_trusted(const TagEntry& entry) = 0;
  /// Opens the container of a rank of this commit. Throws as persist::open_container does, and io if it is not trusted.
  [[nodiscard]] virtual OpenedContainer open_container(const std::string& name, const CommitHead& commit,
                                                       LogicalRank logical_rank) = 0;
};

/// Publishes commits: begin_commit, then put_container on every rank, then publish, or
/// PrefixRemover::discard_unpublished. All calls but put_container are for rank 0, and throw Error{busy} once a later
/// start of the run has begun. Changes are on stable storage when a call returns.
class PrefixWriter {
 public:
  PrefixWriter() = default;
  PrefixWriter(const PrefixWriter&) = delete;
  PrefixWriter& operator=(const PrefixWriter&) = delete;
  virtual ~PrefixWriter() = default;

  /// Measures, if needed, how large writes reach the prefix fastest; takes half a second at most.
  [[nodiscard]] virtual fs::IoChoice choose_io(Io io) = 0;
  /// Lets containers bypass the page cache from now on. On any rank.
  virtual void enable_direct_writes() noexcept = 0;
  /// Whether this commit is published already: an earlier attempt did it and could not report it.
  [[nodiscard]] virtual bool is_complete(const TagEntry& entry) = 0;
  /// Returns how many bytes the prefix lacks for such a commit, as far as it says: quotas show only when something is
  /// written.
  [[nodiscard]] virtual std::uint64_t missing_bytes(const TagEntry& entry, std::uint64_t manifest_bytes,
                                                    const PlainFileTotals& plain) = 0;
  /// Makes the directories of a commit of entry.total_bytes, a manifest and plain files; reuses what a failed attempt
  /// left under the name. Throws no_space before anything is written if there is no space.
  virtual void begin_commit(const TagEntry& entry, std::uint64_t manifest_bytes, const PlainFileTotals& plain) = 0;
  /// Writes the container of `logical_rank`, replacing an earlier one; returns the CRC32C of what was read. On stable
  /// storage when it returns, but no commit before publish(). Throws no_space. On any rank.
  [[nodiscard]] virtual std::uint32_t put_container(const TagEntry& entry, LogicalRank logical_rank,
                                                    const ContainerContent& content) = 0;
  /// Writes a routed file of this rank as a plain file for other programs; call it after put_container. `write` fills
  /// the file from offset 0; `name` is the region's, and an empty directory if it ends with '/'. As durable as the
  /// container, removed with it, and never read again. On any rank.
  virtual void write_plain_file(const TagEntry& entry, LogicalRank logical_rank, const std::string& name,
                                const std::function<void(fs::ByteAccess& to)>& write) = 0;
  /// Publishes the commit, after all containers were put: from here on it exists, whatever fails later. Returns a text
  /// about conveniences that failed after that; empty if none did.
  [[nodiscard]] virtual std::string publish(const TagEntry& entry, std::span<const std::byte> manifest) = 0;
};

/// Removes commits, and pins those that must not be removed. Calls are for rank 0, and durable, as PrefixWriter's are.
class PrefixRemover {
 public:
  PrefixRemover() = default;
  PrefixRemover(const PrefixRemover&) = delete;
  PrefixRemover& operator=(const PrefixRemover&) = delete;
  virtual ~PrefixRemover() = default;

  /// Removes what PrefixWriter::begin_commit made and ranks put, unless it was published.
  virtual void discard_unpublished(const TagEntry& entry) = 0;
  /// Removes the manifest: it is no longer a commit, also where no space is left. Its containers are still there; a
  /// later start finds those that are not removed in this one among its leftovers.
  virtual void retract(const TagEntry& entry) = 0;
  /// Removes the container of a name that is not a commit, with the plain files of that rank, if they exist. Checks
  /// `should_stop` before each file; returns false if it ended this, and something is left. On any rank.
  [[nodiscard]] virtual bool remove_container(const std::string& name, LogicalRank logical_rank,
                                              const fs::ShouldStop& should_stop) = 0;
  /// Removes everything else of a name that is not a commit, and the name itself.
  virtual void clear_name(const std::string& name) = 0;
  /// Returns tags that this start or earlier ones of the run left half published or half removed. Also completes the
  /// catalog of the run's commits.
  [[nodiscard]] virtual Leftovers find_leftovers(const Id128& run_id) = 0;
  /// Removes a commit at once: retract, every container, clear_name.
  void remove_commit(const TagEntry& entry);
  /// Removes all leftovers at once. Returns why some could not be removed; they are tried again next time.
  [[nodiscard]] std::vector<std::string> remove_leftovers(const Id128& run_id);
  /// Whether the commit is pinned at this moment.
  [[nodiscard]] virtual bool is_pinned(const std::string& name) = 0;
  /// Pins or unpins the commit: list_commits() and read_commit() return it as TagEntry::pinned.
  virtual void set_pinned(const TagEntry& entry, bool pinned) = 0;
};

/// The prefix of a run on one rank.
struct PrefixStorage {
  std::unique_ptr<PrefixReader> reader;
  std::unique_ptr<PrefixWriter> writer;
  std::unique_ptr<PrefixRemover> remover;
};

}  // namespace kedge::persist

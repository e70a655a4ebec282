// Storage that outlives the allocation, as the engine sees it: commits are published there whole, or not at all.
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

/// A container's bytes on their way.
struct Content {
  fs::ByteAccess& bytes;
  std::uint64_t size_bytes = 0;
  std::span<const std::byte> mapped = {};  ///< the bytes where they lie in memory; empty if they do not
  fs::RateLimiter* pace = nullptr;         ///< at which they are written; null: as fast as they can be
};

/// Plain files that write_plain_file is to write, over all ranks of a commit.
struct PlainFiles {
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;
};

/// Files left of a commit that was retracted, or that was never completed.
struct Leftover {
  std::string name;
  std::uint32_t ranks = 0;  ///< containers of ranks below this may be there
  bool operator==(const Leftover&) const = default;
};

struct Leftovers {
  std::vector<Leftover> remains;
  std::vector<std::string> problems;  ///< what could not be checked, in words
};

/// The prefix is a place where commits lie side by side, each under a name (TagEntry::directory) with the containers of
/// its ranks and a manifest. The commit exists exactly as long as its manifest does. Nothing in these three interfaces
/// is about how: a filesystem renames and syncs, an object store puts and deletes. All calls are local, and throw
/// Error{io} when the place cannot be reached. This one finds and reads commits, on any rank.
class PrefixReader {
 public:
  PrefixReader() = default;
  PrefixReader(const PrefixReader&) = delete;
  PrefixReader& operator=(const PrefixReader&) = delete;
  virtual ~PrefixReader() = default;

  /// Name of the place in messages.
  [[nodiscard]] virtual const std::string& where() const noexcept = 0;
  /// Newest first, and what is no usable commit. What is known of a commit may come from a cache: read() does not
  /// trust that. Throws also not_found.
  [[nodiscard]] virtual TagList list() = 0;
  /// The head of the manifest of that name, read and checked. Throws also not_found (no manifest), corrupt, mismatch
  /// (newer format).
  [[nodiscard]] virtual TagEntry read(const std::string& name) = 0;
  /// True if a manifest is seen there from this rank; it was not read.
  [[nodiscard]] virtual bool is_published(const std::string& name) = 0;
  /// True if this user put it there: whatever says that it belongs to this user's run and is not, does not.
  [[nodiscard]] virtual bool is_own(const TagEntry& entry) = 0;
  /// Throws io that says what to do if persistent.trust does not permit to use what lies there.
  virtual void require_trusted(const TagEntry& entry) = 0;
  /// The container of a rank of just this commit. Throws as open_container, and io if it is not trusted.
  [[nodiscard]] virtual OpenedContainer open(const std::string& name, const CommitHead& commit,
                                             LogicalRank logical_rank) = 0;
};

/// Publishes commits: begin, then put on every rank, then publish, or PrefixRemover::discard. All but put are rank 0's
/// alone, and throw Error{busy} once a later start of the run has begun. What they changed is on stable storage when
/// they return.
class PrefixWriter {
 public:
  PrefixWriter() = default;
  PrefixWriter(const PrefixWriter&) = delete;
  PrefixWriter& operator=(const PrefixWriter&) = delete;
  virtual ~PrefixWriter() = default;

  /// Measures, where that is to decide, how large writes reach the place fastest; takes half a second at most.
  [[nodiscard]] virtual fs::ChosenIo choose_io(Io io) = 0;
  /// Any rank. What is put from now on goes past the page cache.
  virtual void enable_direct_writes() noexcept = 0;
  /// True if just this commit is published already: an earlier attempt did it and could not say so.
  [[nodiscard]] virtual bool is_complete(const TagEntry& entry) = 0;
  /// How many bytes the place lacks for such a commit, as far as it says: quotas show only when something is written.
  [[nodiscard]] virtual std::uint64_t missing_bytes(const TagEntry& entry, std::uint64_t manifest_bytes,
                                                    const PlainFiles& plain) = 0;
  /// Makes room for a commit of entry.total_bytes, a manifest and plain files; what a failed attempt left under the
  /// name is used. Throws no_space before anything is written if there is none.
  virtual void begin(const TagEntry& entry, std::uint64_t manifest_bytes, const PlainFiles& plain) = 0;
  /// Any rank. The container of `logical_rank`, in place of what was put there before; CRC32C of what was read. On
  /// stable storage when it returns, and nothing that counts until publish. Throws no_space.
  [[nodiscard]] virtual std::uint32_t put(const TagEntry& entry, LogicalRank logical_rank, const Content& content) = 0;
  /// Any rank, after put. Writes a routed file of this rank as a plain file for other programs; `write` fills it from
  /// offset 0, and `name` is a region's; one that ends with '/' is a directory with nothing in it. As durable as what
  /// is put, removed with it, and never read again.
  virtual void write_plain_file(const TagEntry& entry, LogicalRank logical_rank, const std::string& name,
                                const std::function<void(fs::ByteAccess& to)>& write) = 0;
  /// All containers were put: from here on the commit exists, whatever fails later. Conveniences that failed after
  /// that, in words; empty if none did.
  [[nodiscard]] virtual std::string publish(const TagEntry& entry, std::span<const std::byte> manifest) = 0;
};

/// Removes commits, and pins those that are not to be removed. Rank 0's and durable as PrefixWriter's calls are.
class PrefixRemover {
 public:
  PrefixRemover() = default;
  PrefixRemover(const PrefixRemover&) = delete;
  PrefixRemover& operator=(const PrefixRemover&) = delete;
  virtual ~PrefixRemover() = default;

  /// Removes what PrefixWriter::begin made and ranks put, unless it was published.
  virtual void discard(const TagEntry& entry) = 0;
  /// From here on it is no commit, also where no space is left; its containers are still there. What of them is not
  /// removed in this start, another start finds among its leftovers.
  virtual void retract(const TagEntry& entry) = 0;
  /// Any rank. Of what is no commit, with the plain files of that rank; one that is not there is fine. `enough` is
  /// asked before each file: false if it ended this, and something is left.
  [[nodiscard]] virtual bool remove_container(const std::string& name, LogicalRank logical_rank,
                                              const fs::ShouldStop& enough) = 0;
  /// Removes what else is there of what is no commit, and the name itself.
  virtual void clear(const std::string& name) = 0;
  /// Tags that this start or earlier ones of the run left half published or half removed. Also completes the
  /// prefix's list of the run's commits.
  [[nodiscard]] virtual Leftovers leftovers(const Id128& run_id) = 0;
  /// Removes a commit at once: retract, every container, clear.
  void remove(const TagEntry& entry);
  /// All leftovers at once. What could not be removed, in words, is tried again next time.
  [[nodiscard]] std::vector<std::string> sweep(const Id128& run_id);
  /// As list() and read() tell it, at this moment.
  [[nodiscard]] virtual bool is_pinned(const std::string& name) = 0;
  /// list() and read() tell it as TagEntry::pinned.
  virtual void set_pinned(const TagEntry& entry, bool pinned) = 0;
};

/// The prefix of a run, as one rank has it.
struct PrefixStorage {
  std::unique_ptr<PrefixReader> reader;
  std::unique_ptr<PrefixWriter> writer;
  std::unique_ptr<PrefixRemover> remover;
};

}  // namespace kedge::persist

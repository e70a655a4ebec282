// The files of this process on the node-local store, and which of them may be overwritten.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fs/file_system.hpp"
#include "kedge/options.hpp"
#include "kedge/types.hpp"
#include "store/adopted_files.hpp"
#include "store/location.hpp"
#include "store/run_directory.hpp"
#include "store/scanned_file.hpp"
#include "store/slots.hpp"
#include "store/store_file.hpp"

namespace kedge::store {

/// A file about to be begun.
struct PlannedFile {
  FileKind kind = FileKind::container;
  std::uint64_t size_bytes = 0;
  std::optional<LogicalRank> whose = {};  ///< nothing: this rank's own
};

/// Containers, parity, set descriptors and manifests in one run's directory. A logical rank's own files are reused in
/// turn (scans still offer a retired one until it is reused). Adopted files, of ranks that do not run on this node, are
/// read and removed but never written. All calls are local and thread-safe, one at a time; the content of a file is for
/// the caller that began or pinned it. Calls throw Error{bad_state} for files that are not this store's.
class NodeStore {
 public:
  NodeStore(std::shared_ptr<fs::FileSystem> file_system, Options::Store options, Location location,
            LogicalRank logical_rank);
  NodeStore(const NodeStore&) = delete;
  NodeStore& operator=(const NodeStore&) = delete;

  /// Enables adoption: files of ranks that do not run on this node are shared out among the processes that do.
  /// `ranks_on_node` is ascending and contains this rank; files of another rank r are adopted by the process at index r
  /// mod its size. Call it before the first scan; without it, no file is adopted. Throws Error{bad_state} if this rank
  /// is missing or the list is not ascending.
  void set_ranks_on_node(std::span<const int> ranks_on_node);

  /// As given to set_ranks_on_node(); empty before.
  [[nodiscard]] std::span<const int> ranks_on_node() const noexcept { return ranks_on_node_; }

  /// The process of this node that owns or adopts files of that rank here; nothing if no file is adopted.
  [[nodiscard]] std::optional<int> process_in_charge_of(LogicalRank logical_rank) const;

  /// Lets files opened from now on bypass the page cache for large writes, where possible.
  void enable_direct_writes() noexcept { directory_.enable_direct_writes(); }
  /// Reads own and adopted files of all kinds again; with Verify::all, compares every checksum.
  [[nodiscard]] std::vector<ScannedFile> scan(const Id128& run_id, Verify verify);

  /// Reads every byte of this commit's files, own and adopted, that the last scan found intact. Damaged and missing
  /// ones are not offered any more. Returns the files' state.
  [[nodiscard]] std::vector<ScannedFile> verify(const Id128& run_id, const Id128& commit_id,
                                                const SkippedFiles& skipped_files = {});

  /// Begins an own, unsealed file: a free one, else the oldest retired one, else a new one. Reserves `expected_bytes`
  /// (0: unknown) if quota and free space permit. Throws no_space, io.
  [[nodiscard]] StoreFile& begin(FileKind kind, std::uint64_t expected_bytes);
  /// A file of that rank: an own one, or a new one of a rank whose files this process adopts. For others throws
  /// bad_state.
  [[nodiscard]] StoreFile& begin(FileKind kind, LogicalRank whose, std::uint64_t expected_bytes);
  /// Storage that these files would take, begun one after the other, beyond what their idle files have. Throws io.
  [[nodiscard]] std::uint64_t additional_bytes(std::span<const PlannedFile> planned) const;
  /// All limits on the store's space. Throws io.
  [[nodiscard]] std::vector<fs::SpaceLimit> space_limits() const { return directory_.space_limits(); }
  /// Whether begin() would take a file that scans still offer.
  [[nodiscard]] bool begin_would_overwrite(FileKind kind) const {
    const Guard guard(mutex_);
    return of(kind).begin_would_overwrite();
  }
  /// Allocates storage for one idle or new file, unless `wanted` is already met; the next begin() finds it. On memory,
  /// new storage costs as much as the copy into it. Throws no_space, io, and then takes nothing.
  void preallocate(FileKind kind, std::uint64_t size_bytes, const PreallocationTarget& wanted) {
    const Guard guard(mutex_);
    of(kind).preallocate(size_bytes, wanted);
  }
  /// Frees the storage of own files without content. Throws io.
  void free_unused_storage();
  /// Tells that a file of begin() was sealed. A parity file must end with its parity (StoreFile::set_size).
  void sealed(StoreFile& file, const FileKey& key, std::uint64_t generation);
  /// Discards a file of begin(): unseals it if needed, and frees its storage if that is quick.
  void discard(StoreFile& file);
  /// Allows overwriting own sealed files whose key is not kept and whose generation is at most `newest`. Removes excess
  /// idle files: one of each kind stays, or as many as set_idle_files() says. Removes adopted files whose key is not
  /// kept or that are unreadable. Pinned files stay.
  void retire_all_but(const IsKept& is_kept, std::uint64_t newest = UINT64_MAX);

  /// Sets how many idle files of a kind stay: several may be begun before one is retired.
  void set_idle_files(FileKind kind, std::size_t files) {
    const Guard guard(mutex_);
    of(kind).set_idle_files(files);
  }

  /// Pins the sealed, intact file of this key, own or adopted: it is neither overwritten nor removed until every pin()
  /// had its unpin(). Adopted files must not be written. Throws not_found, io.
  [[nodiscard]] StoreFile& pin(FileKind kind, LogicalRank whose, const FileKey& key);
  void unpin(StoreFile& file);
  /// Hides a file from pin() until the next scan, because other files contradict it.
  void ignore_until_scan(const std::string& path);
  /// Files of this commit that pin() finds, own and adopted, each once.
  [[nodiscard]] std::vector<PinnableFile> offered(const Id128& commit_id);
  /// Stops offering a damaged file that pin() finds. Removes it if it is an own parity file, which is never rebuilt.
  /// Throws io; the next scan may then offer the file again.
  void reject(const PinnableFile& file);
  /// Whether another process removed one of the sealed files. Throws io.
  [[nodiscard]] bool has_missing_files() const;
  /// Whether pin() finds the file.
  [[nodiscard]] bool has(FileKind kind, LogicalRank whose, const FileKey& key) noexcept;
  /// Size of the file that pin() finds; 0 if there is none.
  [[nodiscard]] std::uint64_t size_bytes(FileKind kind, LogicalRank whose, const FileKey& key);
  /// Protections of a commit of which this rank has parity or descriptor, each once.
  [[nodiscard]] std::vector<Id128> own_protections(const Id128& commit_id);
  /// This rank's descriptor of a protection, if it also has the parity. Throws io, corrupt.
  [[nodiscard]] std::optional<format::SetDescriptor> own_set(const FileKey& key);
  /// Removes this commit's adopted files, except pinned ones, once their owners have copies; returns how many. Throws
  /// io, perhaps after some were removed.
  std::size_t remove_adopted(const Id128& commit_id) {
    const Guard guard(mutex_);
    return adopted_.drop(commit_id);
  }

  /// Makes a new, empty directory for this rank's routed files, which the caller removes. Throws no_space, io.
  [[nodiscard]] std::string make_routed_directory();
  /// Removes what crashed starts of this rank left behind, except its own files.
  void sweep();
  /// Removes every file of this rank and every adopted one.
  void remove_all();

  [[nodiscard]] const std::string& directory() const noexcept { return directory_.location().directory; }
  [[nodiscard]] bool memory_backed() const noexcept { return directory_.location().memory_backed; }
  [[nodiscard]] std::uint64_t own_bytes() const;
  /// Bytes that count towards the quota: in files of all ranks that run on this node, and in routed files.
  [[nodiscard]] std::uint64_t node_bytes() const;
  [[nodiscard]] std::uint64_t used_bytes() const {
    const Guard guard(mutex_);
    return own_bytes() + adopted_.used_bytes();
  }
  [[nodiscard]] std::size_t files(FileKind kind) const noexcept {
    const Guard guard(mutex_);
    return of(kind).size();
  }
  [[nodiscard]] std::size_t adopted_files() const noexcept {
    const Guard guard(mutex_);
    return adopted_.size();
  }

 private:
  using Guard = std::lock_guard<std::recursive_mutex>;

  [[nodiscard]] std::uint64_t routed_bytes() const;
  [[nodiscard]] Slots& of(FileKind kind) noexcept { return own_[static_cast<std::size_t>(kind)]; }
  [[nodiscard]] const Slots& of(FileKind kind) const noexcept { return own_[static_cast<std::size_t>(kind)]; }
  [[nodiscard]] Slot* find_slot(FileKind kind, LogicalRank whose, const FileKey& key) noexcept;
  [[nodiscard]] Slot& slot_of(const StoreFile& file);
  [[nodiscard]] Slot& begun_slot(const StoreFile& file);

  /// Recursive: while a file is begun, the directory asks this store for the used bytes.
  mutable std::recursive_mutex mutex_;
  LogicalRank logical_rank_;
  RunDirectory directory_;
  std::array<Slots, kFileKinds> own_;
  AdoptedFiles adopted_;
  std::vector<int> ranks_on_node_;
  std::uint64_t routed_count_ = 0;
};

}  // namespace kedge::store

// This process's files on the node-local store: which there are, which may be overwritten, which not.
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

/// A file that is to be begun.
struct PlannedFile {
  FileKind kind = FileKind::container;
  std::uint64_t size_bytes = 0;
  std::optional<LogicalRank> whose = {};  ///< nothing: this rank's own
};

/// Containers, parity, set descriptors and manifests in one run's directory: those of one logical rank, which are its
/// own and reused in turn (a retired one is still offered by a scan until its file is needed), and adopted ones, of
/// ranks that do not run on this node, which are made, read and removed but never written again. All calls are local,
/// from any thread, and one waits for another's; what is in a file belongs to whoever began or pinned it. A call that
/// wants a file that is not one of this store's throws Error{bad_state}.
class NodeStore {
 public:
  NodeStore(std::shared_ptr<fs::FileSystem> file_system, Options::Store options, Location location,
            LogicalRank logical_rank);
  NodeStore(const NodeStore&) = delete;
  NodeStore& operator=(const NodeStore&) = delete;

  /// Which other ranks' files this process tells of: those of ranks that do not run on this node, shared out among the
  /// processes that do. `ranks_on_node` is ascending and has this rank; files of another rank r are adopted by the
  /// process at index r mod its size. To be called before the first scan; without it no file is adopted. Throws
  /// Error{bad_state} if this rank is not in the list or the list is not ascending.
  void set_ranks_on_node(std::span<const int> ranks_on_node);

  /// The ranks of set_ranks_on_node; empty before.
  [[nodiscard]] std::span<const int> ranks_on_node() const noexcept { return ranks_on_node_; }

  /// Files that are opened or made from now on write past the page cache what is large, where that is possible.
  void enable_direct_writes() noexcept { directory_.enable_direct_writes(); }
  /// Reads own and adopted files of all kinds anew; with Verify::all every checksum of every one.
  [[nodiscard]] std::vector<ScannedFile> scan(const Id128& run_id, Verify verify);

  /// Reads every byte of what the last scan found intact of this commit, of all kinds, own and adopted. What is told
  /// is as of now: what is damaged or gone is offered no more.
  [[nodiscard]] std::vector<ScannedFile> verify(const Id128& run_id, const Id128& commit_id,
                                                const SkippedFiles& skipped_files = {});

  /// An own file to write into, unsealed: a free one, else the oldest retired one, else a new one. `expected_bytes` is
  /// taken at once, if quota and free space permit (0: unknown). Throws no_space, io.
  [[nodiscard]] StoreFile& begin(FileKind kind, std::uint64_t expected_bytes);
  /// A file of that rank: an own one, or a new one of a rank whose files this process adopts. For others throws
  /// bad_state.
  [[nodiscard]] StoreFile& begin(FileKind kind, LogicalRank whose, std::uint64_t expected_bytes);
  /// Storage that these files would take, begun one after the other, beyond what their idle files have. Throws io.
  [[nodiscard]] std::uint64_t additional_bytes(std::span<const PlannedFile> planned) const;
  /// Limits on the storage that can be taken. Throws io.
  [[nodiscard]] std::vector<fs::SpaceLimit> space_limits() const { return directory_.space_limits(); }
  /// True if begin() would take a file that can still be offered.
  [[nodiscard]] bool begin_would_overwrite(FileKind kind) const {
    const Guard guard(mutex_);
    return of(kind).begin_would_overwrite();
  }
  /// Gives one idle file, or a new one, so much storage, if fewer have any than are wanted: the next begin() finds it.
  /// On memory, new storage costs as much as the copy into it. Throws no_space, io, and then nothing is taken.
  void preallocate(FileKind kind, std::uint64_t size_bytes, const PreallocationTarget& wanted) {
    const Guard guard(mutex_);
    of(kind).preallocate(size_bytes, wanted);
  }
  /// Frees the storage of own files that hold nothing. Throws io.
  void free_unused_storage();
  /// The file of begin() is sealed now. A parity file must have no byte behind its parity (StoreFile::set_size).
  void sealed(StoreFile& file, const FileKey& key, std::uint64_t generation);
  /// The file of begin() is given up: unsealed if it was sealed, its storage freed if that is quick.
  void discard(StoreFile& file);
  /// Every own sealed file of a generation up to `newest` whose key is not kept may be overwritten from now on, and
  /// files beyond what the run needs are removed: of each kind one idle file stays, unless spare() said more. Adopted
  /// files whose key is not kept are removed, those that hold nothing readable too. Pinned files stay as they are.
  void retire_all_but(const IsKept& is_kept, std::uint64_t newest = UINT64_MAX);

  /// Sets how many idle files of this kind stay: several may be begun before one is retired.
  void set_idle_files(FileKind kind, std::size_t files) {
    const Guard guard(mutex_);
    of(kind).set_idle_files(files);
  }

  /// The sealed and intact file of this key, own or adopted; neither overwritten nor removed until as many unpin() as
  /// pin(). An adopted one is not to be written. Throws not_found, io.
  [[nodiscard]] StoreFile& pin(FileKind kind, LogicalRank whose, const FileKey& key);
  void unpin(StoreFile& file);
  /// pin() does not find this file until another scan: what it says of itself is contradicted by others.
  void ignore_until_scan(const std::string& path);
  /// Files of this commit that pin() would find, own and adopted, each once.
  [[nodiscard]] std::vector<PinnableFile> offered(const Id128& commit_id);
  /// Withdraws a file that pin() would find and that is damaged: it is offered no more. An own file of parity is
  /// removed: nothing is ever rebuilt from it. Throws io, and then it may be offered by another scan.
  void reject(const PinnableFile& file);
  /// Another process removed a file that counts: until the next scan this store seems to have more than it has. Throws
  /// io.
  [[nodiscard]] bool has_missing_files() const;
  /// Whether pin() would find it.
  [[nodiscard]] bool has(FileKind kind, LogicalRank whose, const FileKey& key) noexcept;
  /// The size of the file that pin() would find; 0 if there is none.
  [[nodiscard]] std::uint64_t size_bytes(FileKind kind, LogicalRank whose, const FileKey& key);
  /// Protections of a commit of which this rank has its parity or its descriptor, each once.
  [[nodiscard]] std::vector<Id128> own_protections(const Id128& commit_id);
  /// This rank's descriptor of a protection, if it has its parity as well. Throws io, corrupt.
  [[nodiscard]] std::optional<format::SetDescriptor> own_set(const FileKey& key);
  /// Removes adopted files of this commit, but pinned ones: their owners have copies of their own now. How many; throws
  /// io, and then some may be removed.
  std::size_t remove_adopted(const Id128& commit_id) {
    const Guard guard(mutex_);
    return adopted_.drop(commit_id);
  }

  /// A new, empty directory below this one for routed files of this rank; whoever asks for it removes it. Throws
  /// no_space, io.
  [[nodiscard]] std::string make_routed_directory();
  /// Removes what crashed starts of this rank left besides files of the store.
  void sweep();
  /// Removes every file of this rank and every adopted one.
  void remove_all();

  [[nodiscard]] const std::string& directory() const noexcept { return directory_.location().directory; }
  [[nodiscard]] bool memory_backed() const noexcept { return directory_.location().memory_backed; }
  /// Bytes in own files of all kinds.
  [[nodiscard]] std::uint64_t own_bytes() const;
  /// Bytes in those, in the files of the other ranks that run on this node, in adopted files that this start began, and
  /// in routed files: what the quota is about.
  [[nodiscard]] std::uint64_t node_bytes() const;
  /// Bytes in own and adopted files.
  [[nodiscard]] std::uint64_t used_bytes() const {
    const Guard guard(mutex_);
    return own_bytes() + adopted_.used_bytes();
  }
  /// Own files of a kind.
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

  /// Recursive: a file that is begun asks, by way of the directory, how much the others take.
  mutable std::recursive_mutex mutex_;
  LogicalRank logical_rank_;
  RunDirectory directory_;
  std::array<Slots, kFileKinds> own_;  ///< by FileKind
  AdoptedFiles adopted_;
  std::vector<int> ranks_on_node_;
  std::uint64_t routed_count_ = 0;
};

}  // namespace kedge::store

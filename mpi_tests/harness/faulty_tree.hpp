// Inodes, names and volumes of the faulty disk, and what of them a power loss leaves. No ranks, no locking.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/byte_ranges.hpp"
#include "harness/faulty_file_system.hpp"

namespace kedge::faults {

inline constexpr std::size_t kPageBytes = 4096;

/// `path` is this directory or below it.
[[nodiscard]] bool lies_in(const std::string& path, const std::string& directory);

/// Zeroed address space that costs memory only where it is touched and never moves.
class Arena {
 public:
  explicit Arena(std::size_t size_bytes);
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  ~Arena();
  [[nodiscard]] std::byte* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t size_bytes() const noexcept { return size_bytes_; }
  /// Zeroes a range; whole pages are given back instead of touched.
  void zero(std::size_t begin, std::size_t end);

 private:
  std::byte* data_;
  std::size_t size_bytes_;
};

struct MountedVolume {
  Volume volume;
  std::uint64_t used_bytes = 0;
  std::uint64_t most_used_bytes = 0;
  std::uint64_t used_inodes = 0;
};

struct LockRecord {
  int rank = -1;
  std::uint64_t serial = 0;
  std::string text;
};

struct Inode;
using InodePtr = std::shared_ptr<Inode>;

/// Alive while a process has the file open or mapped.
struct OpenMark {};

struct Inode {
  fs::FileStatus status;
  std::shared_ptr<MountedVolume> volume;
  bool charged = false;            // counted in its volume: it has a name or is open
  std::unique_ptr<Arena> memory;   // files
  std::uint64_t backed_bytes = 0;  // the first bytes that have storage: reserved or written without a gap
  ByteRanges beyond;               // and those behind a gap
  std::vector<std::byte> durable;  // files: as of the last sync
  std::map<std::string, InodePtr> names;
  std::map<std::string, InodePtr> durable_names;
  std::string link_target;
  std::optional<LockRecord> lock;
  std::weak_ptr<OpenMark> opened;
  bool refuses_open = false;                          // with EIO
  std::uint64_t unreadable_from = ~std::uint64_t{0};  // reads of this byte or later fail
  int unreadable_errno = 0;                           // with this

  [[nodiscard]] fs::FileStatus status_now() const {
    fs::FileStatus now = status;
    ByteRanges allocated = beyond;
    allocated.add(0, backed_bytes);
    now.allocated_bytes = allocated.size_bytes();
    return now;
  }
  [[nodiscard]] bool is(fs::FileStatus::Kind kind) const noexcept { return status.kind == kind; }
  [[nodiscard]] std::span<std::byte> bytes() const noexcept;
};

/// Where a path leads. `error` is 0, or the errno of the walk; `node` is null if the last name is free.
struct Place {
  int error = 0;
  InodePtr directory;  // null for the root
  std::string name;
  InodePtr node;
  std::string path;  // canonical
};

class Tree {
 public:
  explicit Tree(const DiskOptions& options);

  [[nodiscard]] Place find(const std::string& path, bool follow_last = false) const;
  [[nodiscard]] const InodePtr& root() const noexcept { return root_; }
  void set_volume(const std::string& prefix, Volume volume);
  [[nodiscard]] std::shared_ptr<MountedVolume> volume_of(const std::string& path) const;

  // Each returns 0 or an errno, and then has done nothing.
  [[nodiscard]] int add(Place& place, const fs::FileStatus& status, std::string link_target = {});
  void erase(const Place& place);
  void move(const Place& from, const Place& to);
  [[nodiscard]] int resize(Inode& file, std::uint64_t size_bytes) const;
  void closed(Inode& file);

  void sync_file(Inode& file) const;
  void sync_names(const InodePtr& directory);
  /// All that is there now is on stable storage.
  void sync_all();
  void lose_power(std::uint64_t seed);
  void drop_locks(std::optional<int> rank);

 private:
  /// A change of names that is not yet on stable storage; `node` was at `from` and is now at `to`.
  struct NameChange {
    InodePtr node;
    InodePtr from_directory;
    std::string from;
    InodePtr to_directory;
    std::string to;
  };
  void record(NameChange change);
  static void apply(const NameChange& change);
  void lose_pages(Inode& file, std::mt19937_64& random);
  void recover_names(Inode& directory, std::mt19937_64& random, std::set<const Inode*>& seen);
  [[nodiscard]] bool remembers(const Inode* directory) const;
  static void charge(Inode& node);
  static void release(Inode& node);

  std::size_t file_limit_bytes_;
  bool power_loss_;
  InodePtr root_;
  std::map<std::string, std::shared_ptr<MountedVolume>> volumes_;
  std::vector<NameChange> unsynced_;
};

}  // namespace kedge::faults

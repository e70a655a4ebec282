// Interface for all access to storage: POSIX in production, a model with injected faults in tests.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kedge::fs {

/// Status of a name; symbolic links are not followed.
struct FileStatus {
  enum class Kind : std::uint8_t { file, directory, link, other };
  Kind kind = Kind::other;
  std::uint64_t size_bytes = 0;
  std::uint32_t owner = 0;  ///< uid
  std::uint32_t mode = 0;   ///< permission bits, 07777
  std::uint64_t links = 0;  ///< number of names; 0 after removal
  std::uint32_t group = 0;  ///< gid
  /// Allocated storage: below the size if the file has holes, above it if storage comes in large units.
  std::uint64_t allocated_bytes = 0;
};

/// The space that one limit (filesystem, memory cgroup, machine) leaves.
struct SpaceLimit {
  std::uint64_t free_bytes = 0;
  std::string limit;     ///< name for messages
  std::uint64_t id = 0;  ///< unique on this node, and equal in all of its processes
};

/// Free space at a path. `free_bytes` is the least of what the filesystem has free and, on memory-backed storage, the
/// memory cgroup still allows; `limit` names the limit that determined it.
struct Space {
  std::uint64_t free_bytes = 0;
  std::uint64_t free_inodes = 0;
  bool memory_backed = false;
  std::string limit;
  std::vector<SpaceLimit> space_limits = {};  ///< all limits, for adding up the needs of several processes
  std::uint64_t total_bytes = 0;              ///< size of the filesystem; 0 if unknown
  std::uint64_t memory_bytes = 0;             ///< memory of the machine, if it backs the filesystem; 0 if unknown
};

/// Random access to the bytes of one file. Calls with a `crc` continue it with the CRC32C of the bytes that they
/// transfer (0 to begin) and return the new value. All throw Error{io | no_space | corrupt}; reading past the end is
/// `corrupt` ("truncated").
class ByteAccess {
 public:
  ByteAccess() = default;
  ByteAccess(const ByteAccess&) = delete;
  ByteAccess& operator=(const ByteAccess&) = delete;
  virtual ~ByteAccess() = default;

  virtual std::uint32_t write_with_crc(std::uint64_t offset, std::span<const std::byte> bytes, std::uint32_t crc) = 0;
  /// Writes without a checksum, for bytes that were already checked. Calls write_with_crc unless overridden.
  virtual void write(std::uint64_t offset, std::span<const std::byte> bytes) { write_with_crc(offset, bytes, 0); }
  /// Writes the XOR of these spans, all of one length. Calls write for one piece at a time unless overridden.
  virtual std::uint32_t write_xor(std::uint64_t offset, std::span<const std::span<const std::byte>> from,
                                  std::uint32_t crc);
  [[nodiscard]] virtual std::uint32_t read_with_crc(std::uint64_t offset, std::span<std::byte> bytes,
                                                    std::uint32_t crc) = 0;
  /// Reads without a checksum, for bytes that are checked elsewhere or contain a checksum. Calls read_with_crc unless
  /// overridden.
  virtual void read(std::uint64_t offset, std::span<std::byte> bytes) {
    static_cast<void>(read_with_crc(offset, bytes, 0));
  }
  /// CRC32C of stored bytes, which are not returned.
  [[nodiscard]] virtual std::uint32_t checksum(std::uint64_t offset, std::uint64_t length, std::uint32_t crc) = 0;
};

/// A shared mapping of a whole file. Exists only for memory-backed files, after reserve(): thus a full store is an
/// error of reserve() and not a signal.
class Mapping : public ByteAccess {
 public:
  [[nodiscard]] virtual std::span<const std::byte> bytes() const noexcept = 0;
  /// False after an access to a page failed: bytes() then shows zeros from that page on, and writes there do not reach
  /// the file. Check it after each use of bytes() or memory().
  [[nodiscard]] virtual bool is_intact() const noexcept { return true; }
  /// The file's bytes for direct writing; empty if the mapping is read-only.
  [[nodiscard]] virtual std::span<std::byte> memory() noexcept { return {}; }
  /// Clears and maps all pages now, so that the first copy need not. False if the system cannot.
  virtual bool prefault() noexcept { return false; }
};

/// An open regular file, accessed by pread and pwrite.
class File : public ByteAccess {
 public:
  [[nodiscard]] virtual const std::string& path() const noexcept = 0;
  /// Status of the open file: `links` is 0 after its name was removed.
  [[nodiscard]] virtual FileStatus status() = 0;
  /// Allocates storage for `size_bytes`; never shrinks the file. Returns the offset from which new storage is cleared
  /// only on first access (`size_bytes` if all is cleared). Throws Error{no_space}.
  virtual std::uint64_t reserve(std::uint64_t size_bytes) = 0;
  /// Allocates huge pages of zeros from the beginning of a file that has this size but no storage, as long as they are
  /// much cheaper than small pages. Returns the end of them; the rest remains a hole.
  virtual std::uint64_t reserve_huge_pages(std::uint64_t size_bytes) {
    (void)size_bytes;
    return 0;
  }
  virtual void truncate(std::uint64_t size_bytes) = 0;
  /// Lets large writes bypass the page cache from now on. False if that is impossible here.
  virtual bool enable_direct_writes() { return false; }
  /// A second descriptor that bypasses the page cache, for writing whole pages of reserved storage without this
  /// interface. Valid while this file is open; -1 if there is none. For one thread at a time.
  [[nodiscard]] virtual int direct_descriptor() { return -1; }
  /// Writes back these whole pages, and pages that the cache keeps together with them, and drops them from the page
  /// cache. Call it before and after writes past the cache, which it keeps from being overwritten by older data, or
  /// hidden by it.
  virtual void drop_cached_pages(std::uint64_t offset, std::uint64_t length) {
    (void)offset;
    (void)length;
  }
  /// Returns when data and size are on stable storage.
  virtual void sync() = 0;
  /// Maps the first `size_bytes`, which must be reserved. The file may be closed before the mapping.
  [[nodiscard]] virtual std::unique_ptr<Mapping> map(std::uint64_t size_bytes) = 0;
};

/// A lock, held until it is destroyed or the process dies. Forked children do not inherit it.
class Lock {
 public:
  Lock() = default;
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;
  virtual ~Lock() = default;
};

/// Where and how to measure writes: to storage that is reused, or to new storage.
struct ProbeTarget {
  enum class Storage : std::uint8_t { recycled, fresh };
  std::string directory;
  std::string name;  ///< name of a temporary file
  Storage storage = Storage::recycled;
};

/// Measured speeds of large writes through the page cache and past it.
struct WriteProbe {
  double buffered_bytes_per_s = 0;  ///< 0 if not measured
  double direct_bytes_per_s = 0;    ///< 0 if not possible
  std::string refusal;              ///< why direct writes are not possible
};

enum class Access : std::uint8_t { read, read_write };

/// Paths are absolute or relative. A symbolic link as the last component is never followed: open and create throw
/// Error{io}. Every Error has path and errno; ENOSPC, EDQUOT and shortages such as ENFILE are `no_space`, a missing
/// name is `not_found`, all else is `io`.
class FileSystem {
 public:
  FileSystem() = default;
  FileSystem(const FileSystem&) = delete;
  FileSystem& operator=(const FileSystem&) = delete;
  virtual ~FileSystem() = default;

  /// Opens an existing regular file; refuses links, directories and devices.
  [[nodiscard]] virtual std::unique_ptr<File> open(const std::string& path, Access access) = 0;
  /// Creates a file exclusively; null if the name exists.
  [[nodiscard]] virtual std::unique_ptr<File> create(const std::string& path, std::uint32_t mode = 0600) = 0;
  /// Appends to a regular file, which is created if it does not exist. The real file system uses one write, so neither
  /// a kill nor another appending process can split the bytes.
  virtual void append(const std::string& path, std::span<const std::byte> bytes, std::uint32_t mode = 0600);
  /// Removes a file or an empty directory; a missing name is not an error.
  virtual void remove(const std::string& path) = 0;
  /// Replaces `to` atomically.
  virtual void rename(const std::string& from, const std::string& to) = 0;
  /// Makes one level. A directory that exists is not an error; status() shows its owner.
  virtual void make_directory(const std::string& path, std::uint32_t mode = 0700) = 0;
  /// Names in a directory, sorted, without "." and "..".
  [[nodiscard]] virtual std::vector<std::string> list(const std::string& path) = 0;
  [[nodiscard]] virtual std::optional<FileStatus> status(const std::string& path) = 0;
  /// Returns when the names in the directory are on stable storage.
  virtual void sync_directory(const std::string& path) = 0;
  [[nodiscard]] virtual Space space(const std::string& path) = 0;
  /// Writes and syncs up to 40 MiB for at most about half a second, alternately through the page cache and with
  /// File::enable_direct_writes. Throws Error{io | no_space}.
  [[nodiscard]] virtual WriteProbe probe_writes(const ProbeTarget& target) {
    (void)target;
    return {0, 0, "this file system supports only one way of writing"};
  }
  /// The absolute path with links resolved; it must exist. Throws Error{not_found | io}.
  [[nodiscard]] virtual std::string canonical(const std::string& path) = 0;
  /// Creates `path` if needed and locks it with the text `holder`; null if this or another process holds it. Only this
  /// call and lock_holder open lock files: closing any other descriptor of one would drop the lock.
  [[nodiscard]] virtual std::unique_ptr<Lock> try_lock(const std::string& path, std::string_view holder) = 0;
  /// The text of the lock's holder; nothing if it is free.
  [[nodiscard]] virtual std::optional<std::string> lock_holder(const std::string& path) = 0;
  /// Whether this process holds the lock.
  [[nodiscard]] virtual bool holds_lock(const std::string& path) = 0;
  /// The uid that files must belong to: this process's.
  [[nodiscard]] virtual std::uint32_t user() const noexcept = 0;
  /// Whether this process is in the group.
  [[nodiscard]] virtual bool in_group(std::uint32_t group) const = 0;
};

[[nodiscard]] inline std::string join(std::string_view directory, std::string_view name) {
  std::string path(directory);
  if (!path.empty() && path.back() != '/') path += '/';
  return path.append(name);
}

/// The real file system.
[[nodiscard]] std::shared_ptr<FileSystem> posix_file_system();

/// Local. The file's content, but not more than its first `bytes_max`. Throws Error{not_found | io}.
[[nodiscard]] inline std::string read_text(FileSystem& file_system, const std::string& path, std::uint64_t bytes_max) {
  const auto file = file_system.open(path, Access::read);
  std::string text(std::min(file->status().size_bytes, bytes_max), '\0');
  file->read(0, std::as_writable_bytes(std::span(text)));
  return text;
}

inline constexpr std::uint32_t kGroupWrites = 0020;
inline constexpr std::uint32_t kOthersWrite = 0002;
inline constexpr std::uint32_t kGroupOrOthersWrite = kGroupWrites | kOthersWrite;
inline constexpr std::uint32_t kGroupOrOthersAnything = 077;
inline constexpr std::uint32_t kSticky = 01000;  ///< only the owner may remove a file in such a directory

/// Local. Syncs every directory on the way to `path`, from the root to its parent. An earlier start may have made one
/// and died before it synced it. Directories for which this user has no permission are skipped: this user did not make
/// them. Throws Error{io}.
void sync_parent_directories(FileSystem& file_system, const std::string& path);

}  // namespace kedge::fs

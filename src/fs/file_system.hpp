// The seam that every byte to storage passes. POSIX stands behind it in production, a faulty model in tests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kedge::fs {

/// Status of a name, links not followed.
struct FileStatus {
  enum class Kind : std::uint8_t { file, directory, link, other };
  Kind kind = Kind::other;
  std::uint64_t size_bytes = 0;
  std::uint32_t owner = 0;  ///< uid
  std::uint32_t mode = 0;   ///< permission bits, 07777
  std::uint64_t links = 0;  ///< names left; 0 after removal
  std::uint32_t group = 0;  ///< gid
  /// Bytes of storage behind it: less than its size if it has holes, more where storage comes in large units.
  std::uint64_t allocated_bytes = 0;
};

/// Space that one of several limits still allows.
struct SpaceLimit {
  std::uint64_t free_bytes = 0;
  std::string limit;     ///< its name for messages
  std::uint64_t id = 0;  ///< id of the limit: the same in every process of this node, and no other one's
};

/// Free space at a path. `free_bytes` is already the least of the filesystem's free space and, on memory-backed
/// storage, of what the memory cgroup still allows; `limit` names which of them it was.
struct Space {
  std::uint64_t free_bytes = 0;
  std::uint64_t free_inodes = 0;
  bool memory_backed = false;
  std::string limit;
  std::vector<SpaceLimit> space_limits = {};  ///< all of them, for callers that add up what several processes need
  std::uint64_t total_bytes = 0;              ///< of the filesystem, free or not; 0: not known
  std::uint64_t memory_bytes = 0;             ///< the machine's memory, where that backs it; 0: not known
};

/// Random access to the bytes of one file. Calls with a `crc` take the CRC32C of what passes on the way: each continues
/// from it (0 to begin) and returns the new value; read and write are for who has no use for one. Throws
/// Error{io | no_space | corrupt}; reading past the end is `corrupt` ("truncated").
class ByteAccess {
 public:
  ByteAccess() = default;
  ByteAccess(const ByteAccess&) = delete;
  ByteAccess& operator=(const ByteAccess&) = delete;
  virtual ~ByteAccess() = default;

  /// Copies `bytes` to `offset`.
  virtual std::uint32_t write_with_crc(std::uint64_t offset, std::span<const std::byte> bytes, std::uint32_t crc) = 0;
  /// Copies `bytes` to `offset` without a checksum: bytes that were checked where they came from. Calls write_with_crc
  /// unless overridden.
  virtual void write(std::uint64_t offset, std::span<const std::byte> bytes) { write_with_crc(offset, bytes, 0); }
  /// Writes the XOR of these bytes, all of one length, to `offset`. Unless overridden, a piece at a time by write.
  virtual std::uint32_t write_xor(std::uint64_t offset, std::span<const std::span<const std::byte>> from,
                                  std::uint32_t crc);
  /// Fills `bytes` from `offset`.
  [[nodiscard]] virtual std::uint32_t read_with_crc(std::uint64_t offset, std::span<std::byte> bytes,
                                                    std::uint32_t crc) = 0;
  /// Fills `bytes` from `offset` without a checksum: for bytes that are checked by whoever takes them next, or that
  /// contain a checksum of their own. Calls read_with_crc unless overridden.
  virtual void read(std::uint64_t offset, std::span<std::byte> bytes) {
    static_cast<void>(read_with_crc(offset, bytes, 0));
  }
  /// CRC32C of stored bytes, without handing them out.
  [[nodiscard]] virtual std::uint32_t checksum(std::uint64_t offset, std::uint64_t length, std::uint32_t crc) = 0;
};

/// A whole file in memory, read and write, shared with the file. Made on memory-backed storage only, after
/// reserve(), so that a full store is an error of reserve() and never a signal.
class Mapping : public ByteAccess {
 public:
  [[nodiscard]] virtual std::span<const std::byte> bytes() const noexcept = 0;
  /// False after a page could not be had: what bytes() gives has zeros instead from there on, and what was written
  /// there does not reach the file. Those who use bytes() or memory() ask afterwards.
  [[nodiscard]] virtual bool is_intact() const noexcept { return true; }
  /// The file's bytes to write to, for others than write_with_crc; empty if the mapping is read-only.
  [[nodiscard]] virtual std::span<std::byte> memory() noexcept { return {}; }
  /// Has the system clear and enter all pages now, so that the first copy into them need not wait for that. False where
  /// it cannot: then the first copy does.
  virtual bool prefault() noexcept { return false; }
};

/// An open regular file. Its ByteAccess goes by pread and pwrite.
class File : public ByteAccess {
 public:
  [[nodiscard]] virtual const std::string& path() const noexcept = 0;
  /// By the open handle: `links` is 0 once the name was removed.
  [[nodiscard]] virtual FileStatus status() = 0;
  /// Gives the file `size_bytes` of real storage (it never shrinks it). Returns from where on what is new of it has yet
  /// to be cleared when it is first touched: `size_bytes` if nothing has. Throws Error{no_space}.
  virtual std::uint64_t reserve(std::uint64_t size_bytes) = 0;
  /// Gives a file that has this size but no storage what can be had at a fraction of the usual cost: huge pages of
  /// zeros, from the beginning on. Returns up to where; the rest remains a hole.
  virtual std::uint64_t reserve_huge_pages(std::uint64_t size_bytes) {
    (void)size_bytes;
    return 0;
  }
  virtual void truncate(std::uint64_t size_bytes) = 0;
  /// From now on large writes may go past the page cache; nothing else changes. False if there is no such way here.
  virtual bool enable_direct_writes() { return false; }
  /// A descriptor of the same file for who writes storage that is reserved past the page cache, by whole pages and not
  /// by this interface. Open as long as this is; -1 if there is none. For one thread at a time.
  [[nodiscard]] virtual int direct_descriptor() { return -1; }
  /// The page cache has nothing of these whole pages, nor of what it keeps together with them, when it returns; what
  /// was dirty is written. For before and after writes past it: nothing older is written over them, or read in their
  /// place.
  virtual void drop_cached_pages(std::uint64_t offset, std::uint64_t length) {
    (void)offset;
    (void)length;
  }
  /// Data and size are on stable storage when it returns.
  virtual void sync() = 0;
  /// Maps the first `size_bytes`, all of which must be reserved. The file may be closed before the mapping.
  [[nodiscard]] virtual std::unique_ptr<Mapping> map(std::uint64_t size_bytes) = 0;
};

/// Held until destroyed or until the process dies; not inherited by forked children.
class Lock {
 public:
  Lock() = default;
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;
  virtual ~Lock() = default;
};

/// Where writes are measured, and which: of storage that is written again and again, or of new storage.
struct ProbeTarget {
  enum class Storage : std::uint8_t { recycled, fresh };
  std::string directory;
  std::string name;  ///< of a file, which is removed
  Storage storage = Storage::recycled;
};

/// Which way large writes are faster at a place, as measured there.
struct WriteProbe {
  double buffered_bytes_per_s = 0;  ///< 0: not measured
  double direct_bytes_per_s = 0;    ///< 0: not possible there
  std::string refusal;              ///< why it is not
};

enum class Access : std::uint8_t { read, read_write };

/// Names are absolute or relative paths. The last component is never followed if it is a symbolic link: open
/// and create throw Error{io} that says so. Every failure is an Error with path and errno; ENOSPC, EDQUOT and
/// ENFILE-like shortages are `no_space`, a missing name is `not_found`, the rest `io`.
class FileSystem {
 public:
  FileSystem() = default;
  FileSystem(const FileSystem&) = delete;
  FileSystem& operator=(const FileSystem&) = delete;
  virtual ~FileSystem() = default;

  /// An existing regular file. Refuses links, directories and devices.
  [[nodiscard]] virtual std::unique_ptr<File> open(const std::string& path, Access access) = 0;
  /// A new file with these permission bits, or null if the name is taken (exclusive create).
  [[nodiscard]] virtual std::unique_ptr<File> create(const std::string& path, std::uint32_t mode = 0600) = 0;
  /// Adds the bytes at the end of a regular file, which is created with these permission bits if need be. On the real
  /// file system by one write: neither a kill nor another process that adds to the file at the same time cuts them.
  virtual void append(const std::string& path, std::span<const std::byte> bytes, std::uint32_t mode = 0600);
  /// Removes a file (or an empty directory); a name that does not exist is fine.
  virtual void remove(const std::string& path) = 0;
  /// Atomically replaces `to`.
  virtual void rename(const std::string& from, const std::string& to) = 0;
  /// One level, with these permission bits; a directory that exists already is fine (look at status() for whose).
  virtual void make_directory(const std::string& path, std::uint32_t mode = 0700) = 0;
  /// Names in a directory, sorted, without . and ...
  [[nodiscard]] virtual std::vector<std::string> list(const std::string& path) = 0;
  /// Nothing if the name does not exist.
  [[nodiscard]] virtual std::optional<FileStatus> status(const std::string& path) = 0;
  /// Names in the directory are on stable storage when it returns.
  virtual void sync_directory(const std::string& path) = 0;
  [[nodiscard]] virtual Space space(const std::string& path) = 0;
  /// Writes and syncs up to 40 MiB, for about half a second at most, through the page cache and by
  /// File::enable_direct_writes in turns. Throws Error{io | no_space}.
  [[nodiscard]] virtual WriteProbe probe_writes(const ProbeTarget& place) {
    (void)place;
    return {0, 0, "this file system supports only one way of writing"};
  }
  /// Absolute, links resolved; the path must exist. Throws Error{not_found | io}.
  [[nodiscard]] virtual std::string canonical(const std::string& path) = 0;
  /// Creates `path` if needed and locks it, with `holder` as its text; null if it is held, by another process or
  /// by this one. Lock files are opened by this call and lock_holder alone: closing any other descriptor of one
  /// would drop the lock.
  [[nodiscard]] virtual std::unique_ptr<Lock> try_lock(const std::string& path, std::string_view holder) = 0;
  /// The text of who holds the lock; nothing if nobody does.
  [[nodiscard]] virtual std::optional<std::string> lock_holder(const std::string& path) = 0;
  /// Whether this process holds it.
  [[nodiscard]] virtual bool holds_lock(const std::string& path) = 0;
  /// The user whose files these must be: uid of this process.
  [[nodiscard]] virtual std::uint32_t user() const noexcept = 0;
  /// Whether this process has the rights of the group.
  [[nodiscard]] virtual bool in_group(std::uint32_t group) const = 0;
};

/// `directory` + "/" + `name`.
[[nodiscard]] inline std::string join(std::string_view directory, std::string_view name) {
  std::string path(directory);
  if (!path.empty() && path.back() != '/') path += '/';
  return path.append(name);
}

/// The real one.
[[nodiscard]] std::shared_ptr<FileSystem> posix_file_system();

}  // namespace kedge::fs

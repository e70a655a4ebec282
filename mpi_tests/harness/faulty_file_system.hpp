// An in-memory disk shared by the ranks of a simulated job, with deaths, errors and power losses by plan.
//
//   FaultyDisk disk;
//   disk.make_directories("/store");
//   disk.on_death([&](int) { disk.stop_all(seed); });
//   disk.stop_world_after(2, 17, seed);        // rank 2 dies in its 17th mutating operation
//   ... run the ranks as threads on disk.view(rank); each ends with kedge::testing::SimulatedDeath ...
//   disk.restart();                            // the next start of the job, on what is left
//
// Thread-safe, except that restart, restore and set_volume want the ranks' threads to be at rest.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "fs/file_system.hpp"
#include "harness/testing_world.hpp"

namespace kedge::faults {

/// One mounted filesystem. Every file counts its whole size (there are no holes in the accounts).
struct Volume {
  std::uint64_t capacity_bytes = std::uint64_t{1} << 40U;
  std::uint64_t capacity_inodes = std::uint64_t{1} << 20U;
  bool memory_backed = false;  ///< empty after a power loss
  std::string limit = "filesystem";
  /// Not 0: what a memory cgroup allows. space() says so, and nothing is refused beyond it: there the kernel would
  /// kill.
  std::uint64_t cgroup_bytes = 0;
  std::uint64_t machine_bytes = 0;  ///< the memory of the machine, as space() says it; 0: not known
  int read_errno = 0;               ///< not 0: every operation fails with it (ESTALE: the filesystem is gone)
  int write_errno = 0;              ///< not 0: every mutating operation fails with it (EROFS, EIO)
};

struct DiskOptions {
  std::size_t piece_bytes = std::size_t{64} << 10U;       ///< one counted operation of write_with_crc
  std::size_t file_limit_bytes = std::size_t{64} << 20U;  ///< address space of one file; more is EFBIG
  std::uint32_t user = 1000;                              ///< uid of the job
  std::uint32_t group = 1000;                             ///< gid of the job and of what it makes
  std::vector<std::uint32_t> more_groups;                 ///< those that the job is in besides
  bool power_loss = true;                                 ///< remember what is synced; without it, less memory
  Volume root;                                            ///< the volume at "/"
};

/// What a new start finds of what the processes before it had issued.
enum class Crash : std::uint8_t {
  process,  ///< all of it: the kernel lived on
  power,    ///< synced: all; not synced: each 4 KiB page, size and name old or new, by seed
};

struct DiskState;

class FaultyDisk {
 public:
  /// Every file, directory and link by its path.
  struct Entry {
    fs::FileStatus status;
    std::vector<std::byte> bytes;
    std::string link_target;
  };
  using Snapshot = std::map<std::string, Entry>;

  explicit FaultyDisk(DiskOptions options = {});

  /// The file system as this rank's process sees it. It stays valid over restart(); files, mappings and locks
  /// of an earlier start do not and throw SimulatedDeath. Views of one rank are one process.
  [[nodiscard]] std::shared_ptr<fs::FileSystem> view(int rank);

  // --- layout
  /// A volume of its own at `prefix` (an absolute path without links); what exists there already stays.
  void set_volume(const std::string& prefix, Volume volume);
  /// For this rank alone, what lies at `source` appears at `at`, instead of what did so before: nodes with a disk each
  /// at the same path. With `source` = `at` nothing is mounted there.
  void mount(int rank, const std::string& at, const std::string& source);

  // --- faults. Operations are numbered from 1 and from the last restart; mutating are create, rename, remove,
  // make_directory, reserve, truncate, sync, sync_directory, try_lock and each piece of write_with_crc. All others
  // are reads. A plan for a number that has passed strikes at the next operation.
  /// The rank dies in its n-th operation: it is done or not (a piece: in part) by seed, then SimulatedDeath is
  /// thrown from it and from every later operation of that rank.
  void stop_world_after(int rank, std::uint64_t n, std::uint64_t seed);
  /// Every rank dies at its next operation, mutating or not.
  void stop_all(std::uint64_t seed);
  /// The rank is dead from now on.
  void kill(int rank);
  /// Called once for each death by plan, on the dying thread, before SimulatedDeath is thrown.
  void on_death(std::function<void(int rank)> callback);
  /// The n-th mutating operation (or read) fails with this errno and does nothing.
  void fail(int rank, std::uint64_t n, int system_errno);
  void fail_read(int rank, std::uint64_t n, int system_errno);
  /// Nothing that was planned to fail for this rank fails any more.
  void heal(int rank);
  /// About one in `one_in` mutating operations fails, by seed; 0 ends it.
  void fail_sometimes(int rank, std::uint64_t one_in, int system_errno, std::uint64_t seed);

  /// Opening the file fails with EIO, until it is removed.
  void refuse_open(const std::string& path);
  /// Reading this byte of the file, or a later one, fails: with EIO like a bad block, or with another errno.
  void make_unreadable(const std::string& path, std::uint64_t from_offset_bytes, int system_errno = EIO);

  /// A bit of the file flips when somebody next opens it to read and write: after a scan, before its bytes are used.
  /// If the file has become shorter than that, the bit flips at a later opening.
  void flip_bit_when_opened(const std::string& path, std::uint64_t offset_bytes);
  /// The file is gone when somebody next opens it to read and write.
  void vanish_when_opened(const std::string& path);
  /// A bit of the file flips right after it went into a checksum: found good, and bad when it is used.
  void flip_bit_when_verified(const std::string& path, std::uint64_t offset_bytes);

  [[nodiscard]] std::uint64_t operations(int rank) const;
  [[nodiscard]] std::uint64_t reads(int rank) const;
  [[nodiscard]] bool dead(int rank) const;
  /// Bytes of files below `prefix`, a path on the disk, that were read so far, by whomever. A mapping counts whole.
  [[nodiscard]] std::uint64_t bytes_read(const std::string& prefix) const;

  /// The next start of the job: nobody is dead, nothing is open or locked, counts and plans begin anew.
  void restart(Crash crash = Crash::process, std::uint64_t seed = 0);

  // --- from outside: no rank, no counts, no errors by plan; what is changed here is on stable storage
  void make_directories(const std::string& path, std::uint32_t mode = 0700);
  /// Creates or changes a name: kind, owner, mode, links; a file is zeros of size_bytes if it is new.
  void plant(const std::string& path, const fs::FileStatus& status);
  void plant_link(const std::string& path, const std::string& target);
  /// Creates the file or replaces its bytes, in place.
  void write_all(const std::string& path, std::span<const std::byte> bytes);
  [[nodiscard]] std::vector<std::byte> read_all(const std::string& path) const;
  void flip_bit(const std::string& path, std::uint64_t offset_bytes, unsigned bit = 0);
  void truncate_from_outside(const std::string& path, std::uint64_t size_bytes);
  /// The name and all below it are gone: a lost disk, a new node.
  void remove_all(const std::string& path);
  /// Bytes in use on the volume where the path lies.
  [[nodiscard]] std::uint64_t used_bytes(const std::string& path) const;
  /// The most that ever were.
  [[nodiscard]] std::uint64_t most_used_bytes(const std::string& path) const;

  [[nodiscard]] Snapshot snapshot() const;
  /// Everything at and below `prefix` becomes what it was in the snapshot.
  void restore(const Snapshot& snapshot, const std::string& prefix = "/");

 private:
  std::shared_ptr<DiskState> state_;
};

}  // namespace kedge::faults

// This process's containers on the node-local store: which there are, which may be overwritten, which not.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "format/superblock.hpp"
#include "fs/file_system.hpp"
#include "kedge/options.hpp"
#include "kedge/types.hpp"
#include "store/container_file.hpp"
#include "store/location.hpp"

namespace kedge::store {

/// What was found in one container file at a scan.
struct Held {
  std::optional<format::Superblock> superblock;  ///< nothing if it cannot be read or is unsealed
  std::string path;
  std::uint64_t size_bytes = 0;
  bool intact = false;  ///< everything that was asked to be verified is as it was written
  std::string damage;   ///< why it is not, empty for an unsealed file (which is no damage)
};

/// Containers of one logical rank in one run's folder. Files are reused in turn: a slot is free (unsealed),
/// sealed and kept, or sealed and retired: a retired one is still offered by a scan until its file is needed.
/// All calls are local.
class NodeStore {
 public:
  NodeStore(std::shared_ptr<fs::FileSystem> file_system, Options::Store options, Location location,
            LogicalRank logical_rank);
  ~NodeStore();
  NodeStore(const NodeStore&) = delete;
  NodeStore& operator=(const NodeStore&) = delete;

  /// Reads this rank's container files anew; with Verify::all every checksum of every one.
  [[nodiscard]] std::vector<Held> scan(const Id128& run_id, Verify verify);
  /// The highest generation in any container of this folder, whosever it is; 0 if there is none.
  [[nodiscard]] std::uint64_t highest_generation();

  /// A file to write the next container into, unsealed: a free one, else the oldest retired one, else a new
  /// one. `expected_bytes` is checked against quota and free space first (0: unknown). Throws no_space, io.
  [[nodiscard]] ContainerFile& begin(std::uint64_t expected_bytes);
  /// The file of begin() holds a sealed container of this commit now.
  void sealed(ContainerFile& file, const Id128& commit_id, std::uint64_t generation);
  /// The file of begin() is given up: unsealed if it was sealed, its storage freed if that is quick.
  void discard(ContainerFile& file);
  /// Every sealed container whose commit is not in `keep` may be overwritten from now on, and files beyond
  /// what the run needs are removed.
  void retire_all_but(const std::set<Id128>& keep);

  /// The sealed container of a commit, pinned: not overwritten until unpin. Throws not_found.
  [[nodiscard]] ContainerFile& pin(const Id128& commit_id);
  void unpin(ContainerFile& file);

  /// A name in the folder for a routed file of this rank that does not exist yet.
  [[nodiscard]] std::string routed_path();
  /// Removes what crashed runs of this rank left besides containers.
  void sweep();
  /// Removes every container and routed file of this rank.
  void remove_all();

  [[nodiscard]] const std::string& folder() const noexcept { return location_.folder; }
  [[nodiscard]] bool memory_backed() const noexcept { return location_.memory_backed; }
  /// Bytes in this rank's container files.
  [[nodiscard]] std::uint64_t used_bytes() const;
  [[nodiscard]] std::size_t files() const noexcept { return slots_.size(); }

 private:
  struct Slot;

  [[nodiscard]] std::string slot_path(std::uint32_t number) const;
  [[nodiscard]] ContainerFile& opened(Slot& slot);
  [[nodiscard]] Slot& slot_of(const ContainerFile& file);
  [[nodiscard]] Slot& free_slot();
  [[nodiscard]] std::unique_ptr<ContainerFile> make_file(std::uint32_t number);
  void replace_if_lost(Slot& slot);
  [[nodiscard]] ContainerFile::SpaceCheck space_check();
  [[noreturn]] void explain_refusal(const Failure& refused, std::uint64_t needed_bytes);
  void find_slots();
  [[nodiscard]] Held inspect(Slot& slot, const Id128& run_id, Verify verify);

  std::shared_ptr<fs::FileSystem> file_system_;
  Options::Store options_;
  Location location_;
  LogicalRank logical_rank_;
  std::vector<std::unique_ptr<Slot>> slots_;
  std::uint64_t routed_count_ = 0;
};

}  // namespace kedge::store

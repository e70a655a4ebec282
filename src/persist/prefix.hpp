// Rank 0's hands on the prefix: tag directories come into being, are committed by a rename, and are removed again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "fs/file_system.hpp"
#include "kedge/options.hpp"
#include "persist/catalog.hpp"
#include "persist/posix_tier.hpp"
#include "persist/tags.hpp"

namespace kedge::persist {

/// All calls are local, and those that change something throw Error{busy} once a later start of the run has begun. What
/// they changed is on stable storage when they return.
class Prefix {
 public:
  /// `catalog` must outlive it.
  Prefix(std::shared_ptr<fs::FileSystem> file_system, Catalog& catalog, Options::Persistent options)
      : file_system_(std::move(file_system)), catalog_(catalog), options_(std::move(options)) {}

  [[nodiscard]] std::string path_of(std::string_view directory) const { return fs::join(catalog_.prefix(), directory); }

  /// True if the commit is there already: an earlier attempt renamed its manifest and could not say so.
  [[nodiscard]] bool confirm(const std::string& directory, const Id128& commit_id);
  /// Makes an empty tag directory with the directories for `world_size` containers, of `total_bytes` with the manifest;
  /// what a failed attempt left under the name is used. Throws no_space before anything is written if there is no room.
  void begin(const std::string& directory, std::uint32_t world_size, std::uint64_t total_bytes);
  /// The containers are there, each synced: brings their names to stable storage, then writes the manifest beside its
  /// place and renames it. Then the commit exists, whatever fails after it: the catalog and `latest` are conveniences,
  /// and what of them failed is returned in words, empty if nothing did.
  [[nodiscard]] std::string commit(const TagEntry& entry, std::span<const std::byte> manifest);
  /// Removes what begin() made and ranks put there, unless a manifest makes it a commit.
  void undo(const std::string& directory);

  /// Finishes what this start or earlier ones of this run left half made or half removed; what could not be removed, in
  /// words, is tried again next time.
  [[nodiscard]] std::vector<std::string> sweep();
  /// Puts into the catalog what it lacks of the run's commits: somebody may have removed it.
  void complete_catalog(const Id128& run_id);
  /// Removes the run's commits beyond the newest `persistent.keep` that are some use, but pinned ones and those in
  /// `spared`. Discarded ones, those whose manifest cannot be read and those in `no_use` are not counted. Tells of each
  /// that goes, just before; a removal that a crash cuts short is finished by the next sweep.
  void retain(const Id128& run_id, const std::set<Id128>& spared, const std::set<Id128>& no_use,
              const std::function<void(const TagEntry&)>& removing);

  /// The newest of the run's commits of this tag that is not discarded. Throws not_found if there is none.
  void set_pinned(const Id128& run_id, const Tag& tag, bool pinned);

 private:
  void pin(const std::string& directory);
  void unpin(const std::string& directory);
  void make_directory(const std::string& path) const;
  /// This run's and this user's, newest first: what others put there under the run's id is not this run's.
  [[nodiscard]] std::vector<TagEntry> own_commits(const Id128& run_id) const;
  [[nodiscard]] bool is_some_use(const TagEntry& entry);
  void write_manifest(const TagEntry& entry, std::span<const std::byte> manifest);
  void write_latest(const std::string& directory);
  void remove_directory(const std::string& directory);
  void remove_containers(const std::string& data);

  std::shared_ptr<fs::FileSystem> file_system_;
  Catalog& catalog_;
  Options::Persistent options_;
};

}  // namespace kedge::persist

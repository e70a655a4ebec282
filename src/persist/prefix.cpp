#include "persist/prefix.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/attempt.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "fs/copy.hpp"
#include "fs/durable_path.hpp"
#include "kedge/error.hpp"
#include "persist/tag_catalog.hpp"
#include "persist/tag_directory.hpp"

namespace kedge::persist {
namespace {

constexpr std::string_view kLatestFile = "latest";
constexpr std::string_view kNewSuffix = ".new";
constexpr std::uint32_t kFileBits = 0666;

std::string new_name(std::string_view name) { return std::string(name).append(kNewSuffix); }

}  // namespace

void Prefix::make_directory(const std::string& path) const {
  file_system_->make_directory(path, mode_bits(options_.mode));
  require_trusted(*file_system_, path, options_.trust);
}

bool Prefix::confirm(const std::string& directory, const Id128& commit_id) {
  if (!file_system_->status(fs::join(path_of(directory), kManifestFile))) return false;
  require_trusted(*file_system_, path_of(directory), options_.trust);
  bool is_it = false;
  const auto failure =
      attempt([&] { is_it = read_tag(*file_system_, catalog_.prefix(), directory).commit.id == commit_id; });
  if (failure && failure->code != ErrorCode::corrupt) throw Error(*failure);
  if (!is_it) return false;  // a damaged one is written anew
  file_system_->sync_directory(path_of(directory));
  return true;
}

void Prefix::begin(const std::string& directory, std::uint32_t world_size, std::uint64_t total_bytes) {
  const fs::Space space = file_system_->space(catalog_.prefix());
  if (space.free_bytes < total_bytes || space.free_inodes < world_size) {
    throw Error(Failure{ErrorCode::no_space,
                        compose("the prefix has {} and {} files free, {} and {} files are needed; free some, for "
                                "example with persistent.keep",
                                human_bytes(space.free_bytes), space.free_inodes, human_bytes(total_bytes), world_size),
                        -1, catalog_.prefix(), 0});
  }
  catalog_.note_unfinished(directory);
  const std::string path = path_of(directory);
  make_directory(path);
  const std::string data = fs::join(path, kDataDirectory);
  make_directory(data);
  for (std::uint64_t rank = 0; rank < world_size; rank += kContainersPerDirectory) {
    make_directory(fs::join(path, container_directory(LogicalRank{static_cast<std::uint32_t>(rank)})));
  }
}

std::string Prefix::commit(const TagEntry& entry, std::span<const std::byte> manifest) {
  const std::string path = path_of(entry.directory);
  for (std::uint64_t rank = 0; rank < entry.commit.world_size; rank += kContainersPerDirectory) {
    file_system_->sync_directory(fs::join(path, container_directory(LogicalRank{static_cast<std::uint32_t>(rank)})));
  }
  file_system_->sync_directory(fs::join(path, kDataDirectory));
  write_manifest(entry, manifest);
  std::string left_out;
  const auto convenience = [&](std::string_view what, auto&& step) {
    if (const auto failure = attempt(step)) {
      left_out += compose("{}{}: {}", left_out.empty() ? "" : "; ", what, to_string(*failure));
    }
  };
  convenience("the run record", [&] {
    if (!catalog_.has_first_manifest()) catalog_.note_first_manifest(entry.commit.id);
  });
  convenience("the catalog", [&] { TagCatalog(*file_system_, catalog_.directory()).add(entry); });
  convenience("latest", [&] {
    if (options_.latest) write_latest(entry.directory);
  });
  convenience("the record of unfinished work", [&] { catalog_.forget_unfinished(entry.directory); });
  return left_out;
}

void Prefix::write_manifest(const TagEntry& entry, std::span<const std::byte> manifest) {
  const std::string path = path_of(entry.directory);
  const std::string unnamed = fs::join(path, new_name(kManifestFile));
  file_system_->remove(unnamed);
  {
    const auto file = file_system_->create(unnamed, mode_bits(options_.mode) & kFileBits);
    if (!file) throw Error(Failure{ErrorCode::io, "something else makes files of the manifest's name", -1, unnamed, 0});
    (void)fs::copy(manifest, *file);
    file->sync();
  }
  // The directory's own name and all on the way to it: a manifest that a power loss makes unreachable was no commit.
  fs::sync_path(*file_system_, path);
  // And what is in it: the rename must not reach stable storage before the name of the data directory.
  file_system_->sync_directory(path);
  catalog_.require_newest_incarnation();
  file_system_->rename(unnamed, fs::join(path, kManifestFile));
  file_system_->sync_directory(path);
}

void Prefix::write_latest(const std::string& directory) {
  catalog_.require_newest_incarnation();
  const std::string unnamed = fs::join(catalog_.prefix(), compose(".latest.{}{}", catalog_.run(), kNewSuffix));
  file_system_->remove(unnamed);
  const auto file = file_system_->create(unnamed, mode_bits(options_.mode) & kFileBits);
  if (!file) throw Error(Failure{ErrorCode::io, "something else makes files of this name", -1, unnamed, 0});
  const std::string text = directory + "\n";
  (void)fs::copy(std::as_bytes(std::span(text)), *file);
  file->sync();
  file_system_->rename(unnamed, fs::join(catalog_.prefix(), kLatestFile));
  file_system_->sync_directory(catalog_.prefix());
}

void Prefix::undo(const std::string& directory) {
  catalog_.require_newest_incarnation();
  if (file_system_->status(fs::join(path_of(directory), kManifestFile))) return;
  remove_directory(directory);
  catalog_.forget_unfinished(directory);
}

std::vector<std::string> Prefix::sweep() {
  std::vector<std::string> left;
  for (const std::string& directory : catalog_.unfinished()) {
    if (!parse_directory_name(directory)) continue;
    const auto failure = attempt([&] {
      // An old start may stand before its rename, its check behind it: it must not name a manifest whose containers go.
      if (file_system_->status(path_of(directory)))
        file_system_->remove(fs::join(path_of(directory), new_name(kManifestFile)));
      // With a manifest it is a commit, or the remains of one, which are not this function's to judge.
      if (!file_system_->status(fs::join(path_of(directory), kManifestFile))) remove_directory(directory);
      catalog_.forget_unfinished(directory);
    });
    if (!failure) continue;
    if (failure->code == ErrorCode::busy) throw Error(*failure);
    left.push_back(compose("{}: {}", directory, to_string(*failure)));
  }
  return left;
}

std::vector<TagEntry> Prefix::own_commits(const Id128& run_id) const {
  std::vector<TagEntry> own = list_tags(*file_system_, catalog_.prefix()).entries;
  std::erase_if(own, [&](const TagEntry& entry) {
    if (entry.commit.run_id != run_id) return true;
    const auto directory = file_system_->status(path_of(entry.directory));
    return !directory || directory->owner != file_system_->user();
  });
  return own;
}

void Prefix::complete_catalog(const Id128& run_id) {
  TagCatalog(*file_system_, catalog_.directory()).complete(own_commits(run_id));
}

void Prefix::retain(const Id128& run_id, const std::set<Id128>& spared, const std::set<Id128>& no_use,
                    const std::function<void(const TagEntry&)>& removing) {
  if (options_.keep == 0) return;
  std::uint64_t newer = 0;
  for (const TagEntry& entry : own_commits(run_id)) {
    if (entry.pinned) continue;
    if (newer < options_.keep) {
      if (!no_use.contains(entry.commit.id) && is_some_use(entry)) ++newer;
      continue;
    }
    if (spared.contains(entry.commit.id)) continue;
    catalog_.note_unfinished(entry.directory);  // checks that this start may still remove
    removing(entry);
    remove_directory(entry.directory);
    TagCatalog(*file_system_, catalog_.directory()).remove(entry.directory);
    catalog_.forget_unfinished(entry.directory);
  }
}

/// An older one must not go for one that no open would take.
bool Prefix::is_some_use(const TagEntry& entry) {
  if (catalog_.is_discarded(entry.commit.id)) return false;
  bool is_it = false;
  const auto failure = attempt(
      [&] { is_it = read_tag(*file_system_, catalog_.prefix(), entry.directory).commit.id == entry.commit.id; });
  return !failure && is_it;
}

/// The manifest first: from then on it is no commit, whatever of its data is still there. Files that are not Kedge's
/// stay and keep the directory.
void Prefix::remove_directory(const std::string& directory) {
  const std::string path = path_of(directory);
  const auto status = file_system_->status(path);
  if (!status) return;
  if (status->kind != fs::FileStatus::Kind::directory || status->owner != file_system_->user()) return;
  catalog_.require_newest_incarnation();
  file_system_->remove(fs::join(path, kManifestFile));
  file_system_->sync_directory(path);
  const std::string data = fs::join(path, kDataDirectory);
  if (file_system_->status(data)) remove_containers(data);
  file_system_->remove(fs::join(path, new_name(kManifestFile)));
  file_system_->remove(fs::join(path, kPinFile));
  if (file_system_->list(path).empty()) file_system_->remove(path);
  file_system_->sync_directory(catalog_.prefix());
}

void Prefix::remove_containers(const std::string& data) {
  for (const std::string& part : file_system_->list(data)) {
    const std::string directory = fs::join(data, part);
    const auto status = file_system_->status(directory);
    if (!status || status->kind != fs::FileStatus::Kind::directory) continue;
    for (const std::string& name : file_system_->list(directory)) {
      if (name.starts_with("rank-") && name.ends_with(".h5")) file_system_->remove(fs::join(directory, name));
    }
    if (file_system_->list(directory).empty()) file_system_->remove(directory);
  }
  if (file_system_->list(data).empty()) file_system_->remove(data);
}

void Prefix::set_pinned(const Id128& run_id, const Tag& tag, bool pinned) {
  for (const TagEntry& entry : own_commits(run_id)) {
    if (entry.commit.tag != tag || catalog_.is_discarded(entry.commit.id)) continue;
    if (pinned) pin(entry.directory);
    else unpin(entry.directory);
    return;
  }
  throw Error(Failure{ErrorCode::not_found,
                      compose("no commit '{}' of this run is on the prefix; wait(tag, Level::persistent) first", tag),
                      -1, catalog_.prefix(), 0});
}

void Prefix::pin(const std::string& directory) {
  catalog_.require_newest_incarnation();
  const std::string path = fs::join(path_of(directory), kPinFile);
  auto file = file_system_->create(path, mode_bits(options_.mode) & kFileBits);
  if (file) file->sync();
  file_system_->sync_directory(path_of(directory));
}

void Prefix::unpin(const std::string& directory) {
  catalog_.require_newest_incarnation();
  file_system_->remove(fs::join(path_of(directory), kPinFile));
  file_system_->sync_directory(path_of(directory));
}

}  // namespace kedge::persist

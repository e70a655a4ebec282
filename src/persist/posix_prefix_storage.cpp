#include "persist/posix_prefix_storage.hpp"

#include <algorithm>

#include "base/attempt.hpp"
#include "base/invariant.hpp"
#include "base/text.hpp"
#include "fs/copy.hpp"
#include "persist/new_file.hpp"
#include "persist/prefix_markers.hpp"
#include "persist/prefix_retention.hpp"
#include "persist/tag_directory.hpp"
#include "persist/tags.hpp"

namespace kedge::persist {
namespace {

constexpr std::string_view kNewSuffix = ".new";
constexpr std::string_view kItself = ".";  // a tag directory that is looked at as a place of its own

std::string new_name(std::string_view name) { return std::string(name).append(kNewSuffix); }

/// One for every directory of containers.
template <class Visit>
void for_each_container_directory(const std::string& path, std::uint32_t world_size, Visit&& visit) {
  for (std::uint64_t rank = 0; rank < world_size; rank += kContainersPerDirectory) {
    visit(fs::join(path, container_directory(LogicalRank{static_cast<std::uint32_t>(rank)})));
  }
}

}  // namespace

std::unique_ptr<PosixPrefixStorage> PosixPrefixStorage::of_source(std::shared_ptr<fs::FileSystem> file_system,
                                                                  const std::string& path,
                                                                  Options::Persistent options) {
  std::string prefix = file_system->canonical(path);
  return std::unique_ptr<PosixPrefixStorage>(
      new PosixPrefixStorage(std::move(file_system), std::move(prefix), std::move(options), nullptr, Of::source));
}

std::string PosixPrefixStorage::path_of(std::string_view name) const {
  return name == kItself ? prefix_ : fs::join(prefix_, name);
}

TagList PosixPrefixStorage::list() {
  if (of_ == Of::run) return list_tags(*file_system_, prefix_);
  require_trusted_parent(*file_system_, prefix_, options_.trust);
  if (!is_published(std::string(kItself))) return list_tags(*file_system_, prefix_);
  TagList list;
  list.entries.push_back(read(std::string(kItself)));
  return list;
}

TagEntry PosixPrefixStorage::read(const std::string& name) { return read_tag(*file_system_, prefix_, name); }

bool PosixPrefixStorage::is_published(const std::string& name) {
  return file_system_->status(fs::join(path_of(name), kManifestFile)).has_value();
}

bool PosixPrefixStorage::is_own(const TagEntry& entry) {
  const auto directory = file_system_->status(path_of(entry.directory));
  return directory && directory->owner == file_system_->user();
}

void PosixPrefixStorage::require_trusted(const TagEntry& entry) {
  const std::string directory = path_of(entry.directory);
  persist::require_trusted(*file_system_, directory, options_.trust);
  persist::require_trusted(*file_system_, fs::join(directory, kManifestFile), options_.trust);
}

OpenedContainer PosixPrefixStorage::open(const std::string& name, const CommitHead& commit, LogicalRank logical_rank) {
  OpenedContainer container = open_container(*file_system_, {path_of(name)}, commit, logical_rank);
  persist::require_trusted(*file_system_, container.path, options_.trust);
  return container;
}

/// Names come into being and go through rank 0 alone, and only as long as no later start has begun.
const RunStart& PosixPrefixStorage::start() const {
  invariant(start_ != nullptr, "only a process with the run's records changes the prefix");
  return *start_;
}

/// One for as long as this lives: it remembers how much of the file is out of date.
TagCatalog& PosixPrefixStorage::catalog() {
  if (!catalog_) catalog_ = std::make_unique<TagCatalog>(*file_system_, start().directory().path());
  return *catalog_;
}

fs::ChosenIo PosixPrefixStorage::choose_io(Io io) {
  return fs::choose_io(*file_system_, io,
                       {start().directory().path(), "probe-of-writes", fs::ProbeTarget::Storage::fresh});
}

bool PosixPrefixStorage::is_complete(const TagEntry& entry) {
  if (!is_published(entry.directory)) return false;
  const std::string path = path_of(entry.directory);
  persist::require_trusted(*file_system_, path, options_.trust);
  bool is_it = false;
  const auto failure = attempt([&] { is_it = read(entry.directory).commit.id == entry.commit.id; });
  if (failure && failure->code != ErrorCode::corrupt) throw Error(*failure);
  if (!is_it) return false;  // a damaged one is written anew
  file_system_->sync_directory(path);
  return true;
}

void PosixPrefixStorage::begin(const TagEntry& entry, std::uint64_t manifest_bytes, const PlainFiles& plain_files) {
  start().require_newest();
  require_space(entry, manifest_bytes, plain_files);
  unfinished().mark(entry.directory);
  const std::string path = path_of(entry.directory);
  make_directory(path);
  make_directory(fs::join(path, kDataDirectory));
  for_each_container_directory(path, entry.commit.world_size,
                               [&](const std::string& directory) { make_directory(directory); });
  if (plain_files.files != 0) plain(entry.directory).make(entry.commit.world_size);
}

std::uint64_t PosixPrefixStorage::missing_bytes(const TagEntry& entry, std::uint64_t manifest_bytes,
                                                const PlainFiles& plain_files) {
  const std::uint64_t total_bytes = entry.total_bytes + manifest_bytes + plain_files.bytes;
  return total_bytes - std::min(total_bytes, file_system_->space(prefix_).free_bytes);
}

void PosixPrefixStorage::require_space(const TagEntry& entry, std::uint64_t manifest_bytes,
                                       const PlainFiles& plain_files) const {
  const std::uint64_t total_bytes = entry.total_bytes + manifest_bytes + plain_files.bytes;
  const std::uint64_t files = entry.commit.world_size + plain_files.files;
  const fs::Space space = file_system_->space(prefix_);
  if (space.free_bytes >= total_bytes && space.free_inodes >= files) return;
  refuse(ErrorCode::no_space,
         compose("the prefix has {} and {} files free, but {} and {} files are needed; free some space, "
                 "for example with persistent.keep",
                 human_bytes(space.free_bytes), space.free_inodes, human_bytes(total_bytes), files),
         prefix_);
}

void PosixPrefixStorage::make_directory(const std::string& path) const {
  file_system_->make_directory(path, mode_bits(options_.mode));
  persist::require_trusted(*file_system_, path, options_.trust);
}

std::uint32_t PosixPrefixStorage::put(const TagEntry& entry, LogicalRank logical_rank, const Content& content) {
  const std::string path = fs::join(path_of(entry.directory), container_file(logical_rank));
  const std::uint32_t mode = mode_bits(options_.mode) & kFileBits;
  auto file = file_system_->create(path, mode);
  if (!file) {
    file_system_->remove(path);  // of an attempt that failed
    file = file_system_->create(path, mode);
  }
  if (!file) throw_name_taken(path);
  if (direct_ && file->enable_direct_writes())
    file->truncate(content.size_bytes);  // or every write moves the end of the file
  std::optional<fs::RateLimitedAccess> paced;
  if (content.pace != nullptr) paced.emplace(*file, *content.pace);
  fs::ByteAccess& to = paced ? static_cast<fs::ByteAccess&>(*paced) : *file;
  const std::uint32_t crc = content.mapped.empty() ? fs::copy(content.bytes, to, content.size_bytes)
                                                   : to.write_with_crc(0, content.mapped, 0);
  file->sync();
  return crc;
}

void PosixPrefixStorage::write_plain_file(const TagEntry& entry, LogicalRank logical_rank, const std::string& name,
                                          const std::function<void(fs::ByteAccess& to)>& write) {
  plain(entry.directory).put(logical_rank, name, write);
}

std::string PosixPrefixStorage::publish(const TagEntry& entry, std::span<const std::byte> manifest) {
  const std::string path = path_of(entry.directory);
  for_each_container_directory(path, entry.commit.world_size,
                               [&](const std::string& directory) { file_system_->sync_directory(directory); });
  file_system_->sync_directory(fs::join(path, kDataDirectory));
  if (options_.plain_routed) plain(entry.directory).sync(entry.commit.world_size);
  write_manifest(entry, manifest);
  std::string left_out;
  const auto convenience = [&](std::string_view what, auto&& step) {
    if (const auto failure = attempt(step)) {
      left_out += compose("{}{}: {}", left_out.empty() ? "" : "; ", what, to_string(*failure));
    }
  };
  convenience("the run record", [&] {
    // Outputs are nothing to restart from.
    const PrefixMarkers markers(start());
    if (!entry.commit.is_output && !markers.has_first_manifest(entry.commit.run_id))
      markers.mark_first_manifest(entry.commit.run_id, entry.commit.id);
  });
  convenience("the catalog", [&] { catalog().add(entry); });
  convenience("latest", [&] {
    if (!entry.commit.is_output) write_latest(entry.directory);
  });
  convenience("the record of unfinished work", [&] { unfinished().unmark(entry.directory); });
  return left_out;
}

void PosixPrefixStorage::write_manifest(const TagEntry& entry, std::span<const std::byte> manifest) {
  const std::string path = path_of(entry.directory);
  const std::string unnamed = fs::join(path, new_name(kManifestFile));
  file_system_->remove(unnamed);
  {
    const auto file = file_system_->create(unnamed, mode_bits(options_.mode) & kFileBits);
    if (!file) throw_name_taken(unnamed);
    (void)fs::copy(manifest, *file);
    file->sync();
  }
  // The directory's own name and all on the way to it: a manifest that a power loss makes unreachable was no commit.
  if (path_is_durable_) file_system_->sync_directory(prefix_);
  else fs::sync_path(*file_system_, path);
  path_is_durable_ = true;
  // Names in the directory become durable first: the rename must not reach stable storage before the name of the data
  // directory.
  file_system_->sync_directory(path);
  start().require_newest();
  file_system_->rename(unnamed, fs::join(path, kManifestFile));
  file_system_->sync_directory(path);
}

void PosixPrefixStorage::write_latest(const std::string& directory) {
  start().require_newest();
  const std::string unnamed = fs::join(prefix_, compose(".latest.{}{}", start().directory().run(), kNewSuffix));
  file_system_->remove(unnamed);
  const auto file = file_system_->create(unnamed, mode_bits(options_.mode) & kFileBits);
  if (!file) throw_name_taken(unnamed);
  const auto failure = attempt([&] {
    const std::string text = directory + "\n";
    (void)fs::copy(std::as_bytes(std::span(text)), *file);
    file->sync();
    file_system_->rename(unnamed, fs::join(prefix_, kLatestFile));
  });
  if (failure) {
    (void)attempt([&] { file_system_->remove(unnamed); });
    throw Error(*failure);
  }
  file_system_->sync_directory(prefix_);
}

void PosixPrefixStorage::discard(const TagEntry& entry) {
  start().require_newest();
  if (!is_published(entry.directory)) clear(entry.directory);
}

bool PosixPrefixStorage::is_own_directory(const std::string& directory) {
  const auto status = file_system_->status(path_of(directory));
  return status && status->kind == fs::FileStatus::Kind::directory && status->owner == file_system_->user();
}

/// The manifest first: from then on it is no commit, whatever of its data is still there.
void PosixPrefixStorage::retract(const TagEntry& entry) {
  (void)start();
  const auto note = [&] { unfinished().mark(entry.directory); };  // checks that this start may still remove
  const auto not_noted = attempt(note);
  if (not_noted && not_noted->code != ErrorCode::no_space) throw Error(*not_noted);
  if (is_own_directory(entry.directory)) {
    const std::string path = path_of(entry.directory);
    file_system_->remove(fs::join(path, kManifestFile));
    file_system_->sync_directory(path);
  }
  if (not_noted) note();  // the manifest's space is free now
  catalog().remove(entry.directory);
}

bool PosixPrefixStorage::remove_container(const std::string& name, LogicalRank logical_rank,
                                          const fs::ShouldStop& enough) {
  if (!is_own_directory(name) || is_published(name)) return true;
  // The container last: by those that are left, a later start knows how many ranks there were.
  if (!plain(name).remove(logical_rank, enough)) return false;
  const std::string data = fs::join(path_of(name), kDataDirectory);
  const auto status = file_system_->status(data);
  if (!status || status->kind != fs::FileStatus::Kind::directory) return true;
  const auto part = file_system_->status(fs::join(path_of(name), container_directory(logical_rank)));
  if (!part || part->kind != fs::FileStatus::Kind::directory) return true;
  if (enough && enough()) return false;
  file_system_->remove(fs::join(path_of(name), container_file(logical_rank)));
  return true;
}

/// Files that are not Kedge's stay and keep the directory.
void PosixPrefixStorage::clear(const std::string& name) {
  start().require_newest();
  if (is_own_directory(name) && !is_published(name)) {
    const std::string path = path_of(name);
    const std::string data = fs::join(path, kDataDirectory);
    plain(name).clear();
    if (file_system_->status(data)) remove_containers(data);
    file_system_->remove(fs::join(path, new_name(kManifestFile)));
    file_system_->remove(fs::join(path, kPinFile));
    if (file_system_->list(path).empty()) file_system_->remove(path);
    file_system_->sync_directory(prefix_);
  }
  unfinished().unmark(name);
}

Leftovers PosixPrefixStorage::leftovers(const Id128& run_id) {
  Leftovers left;
  for (const std::string& directory : unfinished().list()) {
    if (!parse_directory_name(directory)) continue;
    const auto failure = attempt([&] {
      if (auto remains = find_leftover(directory)) left.remains.push_back(*std::move(remains));
    });
    if (!failure) continue;
    if (failure->code == ErrorCode::busy) throw Error(*failure);
    left.problems.push_back(compose("{}: {}", directory, to_string(*failure)));
  }
  // A cache that somebody may have removed: readers do without.
  (void)attempt([&] { catalog().complete(own_commits(*this, run_id)); });
  return left;
}

/// Nothing if it is a commit, or the remains of one, which are not this function's to judge.
std::optional<Leftover> PosixPrefixStorage::find_leftover(const std::string& directory) {
  const std::string path = path_of(directory);
  // An old start may stand before its rename, its check behind it: it must not name a manifest whose containers go.
  if (file_system_->status(path)) file_system_->remove(fs::join(path, new_name(kManifestFile)));
  if (is_published(directory) || !file_system_->status(path)) {
    unfinished().unmark(directory);
    return std::nullopt;
  }
  Leftover remains{directory, 0};
  const std::string data = fs::join(path, kDataDirectory);
  if (!is_own_directory(directory) || !file_system_->status(data)) return remains;
  for (const std::string& part : file_system_->list(data)) {
    const auto status = file_system_->status(fs::join(data, part));
    if (!status || status->kind != fs::FileStatus::Kind::directory) continue;
    for (const std::string& name : file_system_->list(fs::join(data, part))) {
      if (const auto rank = rank_of_container(name)) remains.ranks = std::max(remains.ranks, rank->value + 1);
    }
  }
  return remains;
}

bool PosixPrefixStorage::is_pinned(const std::string& name) {
  const auto status = file_system_->status(fs::join(path_of(name), kPinFile));
  return status && status->kind == fs::FileStatus::Kind::file;
}

void PosixPrefixStorage::remove_containers(const std::string& data) {
  for (const std::string& part : file_system_->list(data)) {
    const std::string directory = fs::join(data, part);
    const auto status = file_system_->status(directory);
    if (!status || status->kind != fs::FileStatus::Kind::directory) continue;
    for (const std::string& name : file_system_->list(directory)) {
      if (rank_of_container(name)) file_system_->remove(fs::join(directory, name));
    }
    if (file_system_->list(directory).empty()) file_system_->remove(directory);
  }
  if (file_system_->list(data).empty()) file_system_->remove(data);
}

void PosixPrefixStorage::set_pinned(const TagEntry& entry, bool pinned) {
  start().require_newest();
  const std::string directory = path_of(entry.directory);
  const std::string path = fs::join(directory, kPinFile);
  if (pinned) {
    const auto file = file_system_->create(path, mode_bits(options_.mode) & kFileBits);
    if (file) file->sync();
  } else {
    file_system_->remove(path);
  }
  file_system_->sync_directory(directory);
}

}  // namespace kedge::persist

#include "store/run_directory.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/attempt.hpp"
#include "base/hash.hpp"
#include "base/text.hpp"

namespace kedge::store {
RunDirectory::RunDirectory(std::shared_ptr<fs::FileSystem> file_system, Options::Store options, Location location,
                           LogicalRank mine, std::function<std::uint64_t()> used_bytes)
    : file_system_(std::move(file_system)),
      options_(std::move(options)),
      location_(std::move(location)),
      used_bytes_(std::move(used_bytes)),
      admission_(file_system_, location_.directory, mine) {}

std::string RunDirectory::path_of(const FileName& name) const { return fs::join(location_.directory, to_string(name)); }

std::vector<FileName> RunDirectory::list() const {
  std::vector<FileName> names;
  for (const std::string& name : within([&] { return file_system_->list(location_.directory); })) {
    if (const auto parsed = parse_file_name(name)) names.push_back(*parsed);
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::uint64_t RunDirectory::stored_bytes(const FileName& name) const {
  const auto status = file_system_->status(path_of(name));
  return status ? std::min(status->size_bytes, status->allocated_bytes) : 0;
}

bool RunDirectory::has_holes(const FileName& name) const {
  const auto status = file_system_->status(path_of(name));
  return status && status->allocated_bytes < status->size_bytes;
}

bool RunDirectory::is_foreign(const FileName& name) const {
  const auto status = file_system_->status(path_of(name));
  return status && (status->owner != file_system_->user() || status->kind != fs::FileStatus::Kind::file);
}

std::unique_ptr<StoreFile> RunDirectory::open(const FileName& name) const {
  auto file = file_system_->open(path_of(name), fs::Access::read_write);
  if (file->status().owner != file_system_->user()) {
    throw Error(Failure{ErrorCode::io, "a file of the node-local store belongs to another user; remove it", -1,
                        file->path(), 0});
  }
  if (direct_ && !location_.memory_backed) (void)file->enable_direct_writes();
  return std::make_unique<StoreFile>(std::move(file), location_.memory_backed, *this);
}

std::unique_ptr<StoreFile> RunDirectory::create(const FileName& name) const {
  auto file = within([&] { return file_system_->create(path_of(name), 0600); });
  if (!file) {
    throw Error(
        Failure{ErrorCode::io, "a new file of the node-local store already exists; remove it", -1, path_of(name), 0});
  }
  if (direct_ && !location_.memory_backed) (void)file->enable_direct_writes();
  return std::make_unique<StoreFile>(std::move(file), location_.memory_backed, *this);
}

Admission::Admitted RunDirectory::admit(std::uint64_t additional_bytes) const {
  return within(
      [&] { return admission_.admit(additional_bytes, [this](std::uint64_t bytes) { return check_fits(bytes); }); });
}

/// A process that is alone need not check: if the system refuses storage, the reason is computed then.
bool RunDirectory::has_ample_space(std::uint64_t additional_bytes) const {
  return processes_ == 1 || within([&] { return !check_fits(additional_bytes * processes_); });
}

void RunDirectory::throw_if_removed() const {
  if (file_system_->status(location_.directory)) return;
  throw Error(Failure{ErrorCode::io,
                      "another process removed the directory of the node-local store; the next create recreates it", -1,
                      location_.directory, 0});
}

/// Throws the system's refusal together with needed and free bytes.
void RunDirectory::explain(const Failure& refused, std::uint64_t needed_bytes) const {
  Failure failure = refused;
  // If the free space cannot be determined, the refusal itself is the better message.
  (void)attempt([&] {
    const fs::Space space = file_system_->space(location_.directory);
    failure.message += compose("; up to {} more are needed; {} and {} inodes are free ({})", human_bytes(needed_bytes),
                               human_bytes(space.free_bytes), space.free_inodes, space.limit);
  });
  throw Error(failure);
}

void RunDirectory::make_names_durable() const {
  if (options_.durable) within([&] { file_system_->sync_directory(location_.directory); });
}

std::optional<std::uint64_t> RunDirectory::quota_left() const {
  const std::uint64_t quota = options_.quota_bytes;
  if (quota == 0) return std::nullopt;
  return quota - std::min(used_bytes_(), quota);
}

std::vector<fs::SpaceLimit> RunDirectory::space_limits() const {
  std::vector<fs::SpaceLimit> space_limits;
  if (const auto left = quota_left()) space_limits.push_back({*left, std::string(kQuota), fnv1a(kQuota)});
  fs::Space space = within([&] { return file_system_->space(location_.directory); });
  if (space.space_limits.empty()) space.space_limits.push_back({space.free_bytes, space.limit, fnv1a(space.limit)});
  std::ranges::move(space.space_limits, std::back_inserter(space_limits));
  return space_limits;
}

std::optional<Failure> RunDirectory::check_fits(std::uint64_t additional_bytes) const {
  const auto no_space = [&](std::string message) {
    return Failure{ErrorCode::no_space, std::move(message), -1, location_.directory, 0};
  };
  if (const auto left = quota_left(); left && additional_bytes > *left) {
    return no_space(compose(
        "this rank needs {} more in the node-local store, but store.quota_bytes leaves {} on this node for all its "
        "ranks; raise it or save less",
        human_bytes(additional_bytes), human_bytes(*left)));
  }
  const fs::Space space = file_system_->space(location_.directory);
  if (additional_bytes > space.free_bytes) {
    return no_space(compose(
        "this rank needs {} more in the node-local store, but {} is free ({}); free some or set store.path to a "
        "larger filesystem",
        human_bytes(additional_bytes), human_bytes(space.free_bytes), space.limit));
  }
  if (space.free_inodes == 0) return no_space("the node-local store has no inodes left; remove files");
  return std::nullopt;
}

}  // namespace kedge::store

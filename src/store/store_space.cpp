#include "store/store_space.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/attempt.hpp"
#include "base/hash.hpp"
#include "base/text.hpp"

namespace kedge::store {

StoreSpace::StoreSpace(std::shared_ptr<fs::FileSystem> file_system, const RunDirectory& directory,
                       const NodeRanks& ranks, std::uint64_t quota_bytes, std::function<std::uint64_t()> used_bytes)
    : file_system_(std::move(file_system)),
      directory_(directory),
      quota_bytes_(quota_bytes),
      used_bytes_(std::move(used_bytes)),
      admission_(file_system_, directory.path(), ranks.own_rank()) {
  if (ranks.ranks_on_node().size() <= 1) return;
  process_count_ = ranks.ranks_on_node().size();
  admission_.set_shared();
}

std::unique_ptr<StoreFile> StoreSpace::open(const FileName& name) const {
  auto file = file_system_->open(directory_.path_of(name), fs::Access::read_write);
  if (file->status().owner != file_system_->user()) {
    throw Error(Failure{ErrorCode::io, "a file of the node-local store belongs to another user; remove it", -1,
                        file->path(), 0});
  }
  if (uses_direct_writes_ && !directory_.memory_backed()) (void)file->enable_direct_writes();
  return std::make_unique<StoreFile>(std::move(file), directory_.memory_backed(), *this);
}

std::unique_ptr<StoreFile> StoreSpace::create(const FileName& name) const {
  auto file = directory_.run_in_directory([&] { return file_system_->create(directory_.path_of(name), 0600); });
  if (!file) {
    throw Error(Failure{ErrorCode::io, "a new file of the node-local store already exists; remove it", -1,
                        directory_.path_of(name), 0});
  }
  if (uses_direct_writes_ && !directory_.memory_backed()) (void)file->enable_direct_writes();
  return std::make_unique<StoreFile>(std::move(file), directory_.memory_backed(), *this);
}

Admission::Admitted StoreSpace::admit_bytes(std::uint64_t additional_bytes) const {
  return directory_.run_in_directory(
      [&] { return admission_.admit(additional_bytes, [this](std::uint64_t bytes) { return check_fits(bytes); }); });
}

/// A process that is alone need not check: if the system refuses storage, the reason is computed then.
bool StoreSpace::has_ample_space(std::uint64_t additional_bytes) const {
  return process_count_ == 1 ||
         directory_.run_in_directory([&] { return !check_fits(additional_bytes * process_count_); });
}

/// Throws the system's refusal together with needed and free bytes.
void StoreSpace::throw_refusal(const Failure& refused, std::uint64_t needed_bytes) const {
  Failure failure = refused;
  // If the free space cannot be determined, the refusal itself is the better message.
  (void)attempt([&] {
    const fs::Space space = file_system_->space(directory_.path());
    failure.message += compose("; up to {} more are needed; {} and {} inodes are free ({})", human_bytes(needed_bytes),
                               human_bytes(space.free_bytes), space.free_inodes, space.limit);
  });
  throw Error(failure);
}

std::optional<std::uint64_t> StoreSpace::quota_left() const {
  if (quota_bytes_ == 0) return std::nullopt;
  return quota_bytes_ - std::min(used_bytes_(), quota_bytes_);
}

std::vector<fs::SpaceLimit> StoreSpace::limits() const {
  std::vector<fs::SpaceLimit> limits;
  if (const auto left = quota_left()) limits.push_back({*left, std::string(kQuotaLimitName), fnv1a(kQuotaLimitName)});
  fs::Space space = directory_.run_in_directory([&] { return file_system_->space(directory_.path()); });
  if (space.space_limits.empty()) space.space_limits.push_back({space.free_bytes, space.limit, fnv1a(space.limit)});
  std::ranges::move(space.space_limits, std::back_inserter(limits));
  return limits;
}

std::optional<Failure> StoreSpace::check_fits(std::uint64_t additional_bytes) const {
  const auto no_space = [&](std::string message) {
    return Failure{ErrorCode::no_space, std::move(message), -1, directory_.path(), 0};
  };
  if (const auto left = quota_left(); left && additional_bytes > *left) {
    return no_space(compose(
        "this rank needs {} more in the node-local store, but store.quota_bytes leaves {} on this node for all its "
        "ranks; raise it or save less",
        human_bytes(additional_bytes), human_bytes(*left)));
  }
  const fs::Space space = file_system_->space(directory_.path());
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

// The faulty disk from outside: layout, plans, restarts, and the hands that damage files.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>

#include "harness/faulty_file_system.hpp"
#include "harness/faulty_state.hpp"

namespace kedge::faults {
namespace {

using Kind = fs::FileStatus::Kind;

std::string moved(const std::string& path, const std::string& from, const std::string& to) {
  if (from == "/") return fs::join(to, path.substr(1));
  return to + path.substr(from.size());
}

/// One slash between parts and none at the end; relative paths begin at the root.
std::string tidy(const std::string& path) {
  std::string result = "/";
  for (const char c : path) {
    if (c != '/' || result.back() != '/') result += c;
  }
  if (result.size() > 1 && result.back() == '/') result.pop_back();
  return result;
}

void check(int error, std::string_view action, const std::string& path) {
  if (error != 0) fs::throw_system_error(action, path, error);
}

Place file_at(const Tree& tree, const std::string& path) {
  Place place = tree.find(path);
  check(place.error != 0 ? place.error : place.node ? 0 : ENOENT, "reach from outside", path);
  check(place.node->is(Kind::file) ? 0 : EISDIR, "reach from outside", path);
  return place;
}

Place found_or_added(Tree& tree, const std::string& path, const fs::FileStatus& status, std::string target = {}) {
  Place place = tree.find(path);
  check(place.error, "plant", path);
  if (!place.node) check(tree.add(place, status, std::move(target)), "plant", path);
  return place;
}

void set_bytes(Tree& tree, Inode& file, const std::string& path, std::span<const std::byte> bytes) {
  check(tree.resize(file, bytes.size()), "write from outside", path);
  if (!bytes.empty()) std::memcpy(file.memory->data(), bytes.data(), bytes.size());
  file.backed_bytes = bytes.size();
  tree.sync_file(file);
}

void erase_below(Tree& tree, const Place& place) {
  while (!place.node->names.empty()) {
    const auto& [name, node] = *place.node->names.begin();
    erase_below(tree, Place{0, place.node, name, node, {}});
  }
  if (place.directory) {
    tree.erase(place);
    tree.sync_names(place.directory);
  }
}

void collect(const std::string& path, const Inode& node, FaultyDisk::Snapshot& result) {
  const auto bytes = node.bytes();
  result[path] = {node.status, {bytes.begin(), bytes.end()}, node.link_target};
  for (const auto& [name, child] : node.names) collect(fs::join(path, name), *child, result);
}

}  // namespace

std::string DiskState::to_disk(int rank, const std::string& path) const {
  std::string clean = tidy(path);
  const auto found = mounts.find(rank);
  if (found == mounts.end()) return clean;
  for (const auto& [at, source] : found->second) {
    if (lies_in(clean, at)) return moved(clean, at, source);
  }
  return clean;
}

std::string DiskState::to_rank(int rank, const std::string& path) const {
  const auto found = mounts.find(rank);
  if (found == mounts.end()) return path;
  for (const auto& [at, source] : found->second) {
    if (lies_in(path, source)) return moved(path, source, at);
  }
  return path;
}

FaultyDisk::FaultyDisk(DiskOptions options) : state_(std::make_shared<DiskState>(std::move(options))) {}

std::shared_ptr<fs::FileSystem> FaultyDisk::view(int rank) { return make_view(state_, rank); }

void FaultyDisk::set_volume(const std::string& prefix, Volume volume) {
  const std::lock_guard guard(state_->mutex);
  state_->tree.set_volume(tidy(prefix), std::move(volume));
}

void FaultyDisk::mount(int rank, const std::string& at, const std::string& source) {
  const std::lock_guard guard(state_->mutex);
  auto& mounts = state_->mounts[rank];
  std::erase_if(mounts, [&](const auto& mount) { return mount.first == tidy(at); });
  if (tidy(at) != tidy(source)) mounts.emplace_back(tidy(at), tidy(source));
}

void FaultyDisk::stop_world_after(int rank, std::uint64_t n, std::uint64_t seed) {
  const std::lock_guard guard(state_->mutex);
  state_->plan.stop_after(rank, n, seed);
}

void FaultyDisk::stop_all(std::uint64_t seed) {
  const std::lock_guard guard(state_->mutex);
  state_->plan.stop_all(seed);
}

void FaultyDisk::kill(int rank) {
  const std::lock_guard guard(state_->mutex);
  state_->plan.kill(rank);
  state_->tree.drop_locks(rank);
}

void FaultyDisk::on_death(std::function<void(int)> callback) {
  const std::lock_guard guard(state_->mutex);
  state_->on_death = std::move(callback);
}

void FaultyDisk::fail(int rank, std::uint64_t n, int system_errno) {
  const std::lock_guard guard(state_->mutex);
  state_->plan.fail(rank, n, system_errno);
}

void FaultyDisk::fail_read(int rank, std::uint64_t n, int system_errno) {
  const std::lock_guard guard(state_->mutex);
  state_->plan.fail_read(rank, n, system_errno);
}

void FaultyDisk::heal(int rank) {
  const std::lock_guard guard(state_->mutex);
  state_->plan.heal(rank);
}

void FaultyDisk::fail_sometimes(int rank, std::uint64_t one_in, int system_errno, std::uint64_t seed) {
  const std::lock_guard guard(state_->mutex);
  state_->plan.fail_sometimes(rank, one_in, system_errno, seed);
}

void FaultyDisk::refuse_open(const std::string& path) {
  const std::lock_guard guard(state_->mutex);
  const Place place = state_->tree.find(path);
  if (!place.node) throw std::logic_error("there is no " + path);
  place.node->refuses_open = true;
}

void FaultyDisk::make_unreadable(const std::string& path, std::uint64_t from_offset_bytes, int system_errno) {
  const std::lock_guard guard(state_->mutex);
  const Place place = state_->tree.find(path);
  if (!place.node) throw std::logic_error("there is no " + path);
  place.node->unreadable_from = from_offset_bytes;
  place.node->unreadable_errno = system_errno;
}

void FaultyDisk::flip_bit_when_opened(const std::string& path, std::uint64_t offset_bytes) {
  const std::lock_guard guard(state_->mutex);
  state_->flips_when_opened[path] = offset_bytes;
}

void FaultyDisk::vanish_when_opened(const std::string& path) {
  const std::lock_guard guard(state_->mutex);
  state_->vanish_when_opened.insert(path);
}

void FaultyDisk::flip_bit_when_verified(const std::string& path, std::uint64_t offset_bytes) {
  const std::lock_guard guard(state_->mutex);
  state_->flips_when_verified[path] = offset_bytes;
}

std::uint64_t FaultyDisk::operations(int rank) const {
  const std::lock_guard guard(state_->mutex);
  return state_->plan.operations(rank);
}

std::uint64_t FaultyDisk::reads(int rank) const {
  const std::lock_guard guard(state_->mutex);
  return state_->plan.reads(rank);
}

bool FaultyDisk::dead(int rank) const {
  const std::lock_guard guard(state_->mutex);
  return state_->plan.dead(rank);
}

std::uint64_t FaultyDisk::bytes_read(const std::string& prefix) const {
  const std::lock_guard guard(state_->mutex);
  std::uint64_t sum = 0;
  for (const auto& [path, bytes] : state_->bytes_read) sum += lies_in(path, prefix) ? bytes : 0;
  return sum;
}

void FaultyDisk::restart(Crash crash, std::uint64_t seed) {
  const std::lock_guard guard(state_->mutex);
  ++state_->start;
  state_->plan = FaultPlan();
  state_->tree.drop_locks(std::nullopt);
  if (crash == Crash::power) state_->tree.lose_power(seed);
}

void FaultyDisk::make_directories(const std::string& path, std::uint32_t mode) {
  const std::lock_guard guard(state_->mutex);
  const std::string clean = tidy(path);
  for (std::size_t end = clean.find('/', 1);; end = clean.find('/', end + 1)) {
    const fs::FileStatus status{Kind::directory, 0, state_->options.user, mode, 2, state_->options.group};
    const Place place = found_or_added(state_->tree, clean.substr(0, end), status);
    if (place.directory) state_->tree.sync_names(place.directory);
    if (end == std::string::npos) return;
  }
}

void FaultyDisk::plant(const std::string& path, const fs::FileStatus& status) {
  const std::lock_guard guard(state_->mutex);
  const Place place = found_or_added(state_->tree, path, status);
  Inode& node = *place.node;
  if (node.is(Kind::file) && node.status.size_bytes != status.size_bytes) {
    check(state_->tree.resize(node, status.size_bytes), "plant", path);
    node.backed_bytes = status.size_bytes;
  }
  if (node.is(Kind::file)) state_->tree.sync_file(node);
  const auto size_bytes = node.status.size_bytes;
  const bool had_memory = node.memory != nullptr;
  node.status = status;
  node.status.size_bytes = had_memory ? status.size_bytes : size_bytes;
  if (place.directory) state_->tree.sync_names(place.directory);
}

void FaultyDisk::plant_link(const std::string& path, const std::string& target) {
  const std::lock_guard guard(state_->mutex);
  const fs::FileStatus status{Kind::link, 0, state_->options.user, 0777, 1, state_->options.group};
  const Place place = found_or_added(state_->tree, path, status, target);
  check(place.node->is(Kind::link) ? 0 : EEXIST, "plant a link", path);
  place.node->link_target = target;
  state_->tree.sync_names(place.directory);
}

void FaultyDisk::write_all(const std::string& path, std::span<const std::byte> bytes) {
  const std::lock_guard guard(state_->mutex);
  const fs::FileStatus status{Kind::file, 0, state_->options.user, 0600, 1, state_->options.group};
  const Place place = found_or_added(state_->tree, path, status);
  check(place.node->is(Kind::file) ? 0 : EISDIR, "write from outside", path);
  set_bytes(state_->tree, *place.node, path, bytes);
  state_->tree.sync_names(place.directory);
}

std::vector<std::byte> FaultyDisk::read_all(const std::string& path) const {
  const std::lock_guard guard(state_->mutex);
  const auto bytes = file_at(state_->tree, path).node->bytes();
  return {bytes.begin(), bytes.end()};
}

void FaultyDisk::flip_bit(const std::string& path, std::uint64_t offset_bytes, unsigned bit) {
  const std::lock_guard guard(state_->mutex);
  Inode& file = *file_at(state_->tree, path).node;
  fs::require_within(path, offset_bytes, 1, file.status.size_bytes);
  const auto flip = std::byte{1} << (bit % 8);
  file.bytes()[offset_bytes] ^= flip;
  if (offset_bytes < file.durable.size()) file.durable[offset_bytes] ^= flip;
}

void FaultyDisk::truncate_from_outside(const std::string& path, std::uint64_t size_bytes) {
  const std::lock_guard guard(state_->mutex);
  Inode& file = *file_at(state_->tree, path).node;
  check(state_->tree.resize(file, size_bytes), "truncate from outside", path);
  state_->tree.sync_file(file);
}

void FaultyDisk::remove_all(const std::string& path) {
  const std::lock_guard guard(state_->mutex);
  const Place place = state_->tree.find(path);
  if (place.error == 0 && place.node) erase_below(state_->tree, place);
}

std::uint64_t FaultyDisk::used_bytes(const std::string& path) const {
  const std::lock_guard guard(state_->mutex);
  return state_->tree.volume_of(tidy(path))->used_bytes;
}

std::uint64_t FaultyDisk::most_used_bytes(const std::string& path) const {
  const std::lock_guard guard(state_->mutex);
  return state_->tree.volume_of(tidy(path))->most_used_bytes;
}

FaultyDisk::Snapshot FaultyDisk::snapshot() const {
  const std::lock_guard guard(state_->mutex);
  Snapshot result;
  collect("/", *state_->tree.root(), result);
  return result;
}

void FaultyDisk::restore(const Snapshot& snapshot, const std::string& prefix) {
  remove_all(prefix);
  for (const auto& [path, entry] : snapshot) {  // in order of paths: a directory comes before what is in it
    if (!lies_in(path, tidy(prefix)) || path == "/") continue;
    if (entry.status.kind == Kind::link) plant_link(path, entry.link_target);
    if (entry.status.kind == Kind::file) write_all(path, entry.bytes);
    plant(path, entry.status);
  }
}

}  // namespace kedge::faults

#include "harness/faulty_tree.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <functional>
#include <new>

namespace kedge::faults {
namespace {

using Kind = fs::FileStatus::Kind;
constexpr int kMaxLinks = 40;  // as Linux

std::deque<std::string> parts_of(const std::string& path) {
  std::deque<std::string> parts;
  for (std::size_t begin = 0; begin < path.size();) {
    const auto end = std::min(path.find('/', begin), path.size());
    if (end > begin) parts.push_back(path.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

}  // namespace

bool lies_in(const std::string& path, const std::string& directory) {
  return directory == "/" || path == directory || path.starts_with(directory + "/");
}

Arena::Arena(std::size_t size_bytes) : data_(nullptr), size_bytes_(size_bytes) {
  void* data = ::mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED) throw std::bad_alloc();
  data_ = static_cast<std::byte*>(data);
}

Arena::~Arena() { ::munmap(data_, size_bytes_); }

void Arena::zero(std::size_t begin, std::size_t end) {
  const std::size_t page = (begin + kPageBytes - 1) / kPageBytes * kPageBytes;
  std::memset(data_ + begin, 0, std::min(page, end) - begin);
  if (page < end && ::madvise(data_ + page, end - page, MADV_DONTNEED) != 0) std::memset(data_ + page, 0, end - page);
}

std::span<std::byte> Inode::bytes() const noexcept {
  return memory ? std::span(memory->data(), status.size_bytes) : std::span<std::byte>();
}

Tree::Tree(const DiskOptions& options)
    : file_limit_bytes_(options.file_limit_bytes), power_loss_(options.power_loss), root_(std::make_shared<Inode>()) {
  volumes_["/"] = std::make_shared<MountedVolume>(MountedVolume{options.root, 0, 0});
  root_->status = {Kind::directory, 0, options.user, 0755, 2, options.group};
  root_->volume = volumes_["/"];
}

Place Tree::find(const std::string& path, bool follow_last) const {
  std::vector<std::pair<std::string, InodePtr>> walked{{"", root_}};
  auto todo = parts_of(path);
  const auto failed = [](int error) { return Place{error, nullptr, {}, nullptr, {}}; };
  const auto place_of = [&](std::string name, InodePtr node) {
    std::string canonical;
    for (std::size_t i = 1; i < walked.size(); ++i) canonical += "/" + walked[i].first;
    canonical += "/" + name;
    return Place{0, walked.back().second, std::move(name), std::move(node), std::move(canonical)};
  };
  for (int links = 0; !todo.empty();) {
    const std::string part = std::move(todo.front());
    todo.pop_front();
    if (part == ".") continue;
    if (part == "..") {
      if (walked.size() > 1) walked.pop_back();
      continue;
    }
    const InodePtr directory = walked.back().second;
    const auto found = directory->names.find(part);
    if (found == directory->names.end()) return todo.empty() ? place_of(part, nullptr) : failed(ENOENT);
    const InodePtr node = found->second;
    if (node->is(Kind::link) && (follow_last || !todo.empty())) {
      if (++links > kMaxLinks) return failed(ELOOP);
      if (node->link_target.starts_with('/')) walked.resize(1);
      const auto target = parts_of(node->link_target);
      todo.insert(todo.begin(), target.begin(), target.end());
      continue;
    }
    if (node->is(Kind::directory)) {
      walked.emplace_back(part, node);
      continue;
    }
    return todo.empty() ? place_of(part, node) : failed(ENOTDIR);
  }
  const auto [name, node] = walked.back();
  if (walked.size() == 1) return Place{0, nullptr, {}, root_, "/"};
  walked.pop_back();
  return place_of(name, node);
}

void Tree::set_volume(const std::string& prefix, Volume volume) {
  auto& mounted = volumes_[prefix];
  if (!mounted) mounted = std::make_shared<MountedVolume>();
  mounted->volume = std::move(volume);
  const std::function<void(Inode&)> adopt = [&](Inode& node) {
    const bool was_charged = node.charged;
    if (was_charged) release(node);
    node.volume = mounted;
    if (was_charged) charge(node);
    for (auto& [name, child] : node.names) adopt(*child);
  };
  if (const Place place = find(prefix); prefix != "/" && place.node && place.node->volume != mounted) {
    adopt(*place.node);
  }
}

std::shared_ptr<MountedVolume> Tree::volume_of(const std::string& path) const {
  auto best = volumes_.at("/");
  std::size_t longest = 0;
  for (const auto& [prefix, mounted] : volumes_) {
    if (!lies_in(path, prefix) || prefix.size() < longest) continue;
    longest = prefix.size();
    best = mounted;
  }
  return best;
}

void Tree::charge(Inode& node) {
  node.charged = true;
  node.volume->used_bytes += node.status.size_bytes;
  node.volume->used_inodes += 1;
}

void Tree::release(Inode& node) {
  if (!node.charged) return;
  node.charged = false;
  node.volume->used_bytes -= node.status.size_bytes;
  node.volume->used_inodes -= 1;
}

int Tree::add(Place& place, const fs::FileStatus& status, std::string link_target) {
  auto volume = volume_of(place.path);
  if (volume->used_inodes >= volume->volume.capacity_inodes) return ENOSPC;
  auto node = std::make_shared<Inode>();
  node->status = status;
  node->status.size_bytes = 0;
  node->volume = std::move(volume);
  node->link_target = std::move(link_target);
  if (status.kind == Kind::file) node->memory = std::make_unique<Arena>(file_limit_bytes_);
  charge(*node);
  place.directory->names[place.name] = node;
  place.node = node;
  record({node, nullptr, {}, place.directory, place.name});
  return 0;
}

void Tree::erase(const Place& place) {
  Inode& node = *place.node;
  place.directory->names.erase(place.name);
  node.status.links = 0;
  if (node.opened.expired()) release(node);
  record({place.node, place.directory, place.name, nullptr, {}});
}

void Tree::move(const Place& from, const Place& to) {
  if (to.node) {
    to.node->status.links = 0;
    if (to.node->opened.expired()) release(*to.node);
  }
  from.directory->names.erase(from.name);
  to.directory->names[to.name] = from.node;
  record({from.node, from.directory, from.name, to.directory, to.name});
}

int Tree::resize(Inode& file, std::uint64_t size_bytes) const {
  auto& volume = *file.volume;
  const std::uint64_t old_size = file.status.size_bytes;
  if (size_bytes > file_limit_bytes_) return EFBIG;
  if (size_bytes > old_size && volume.used_bytes + (size_bytes - old_size) > volume.volume.capacity_bytes) {
    return ENOSPC;
  }
  if (size_bytes < old_size) file.memory->zero(size_bytes, old_size);
  if (file.charged) volume.used_bytes = volume.used_bytes - old_size + size_bytes;
  volume.most_used_bytes = std::max(volume.most_used_bytes, volume.used_bytes);
  file.status.size_bytes = size_bytes;
  file.backed_bytes = std::min(file.backed_bytes, size_bytes);
  file.beyond.truncate(size_bytes);
  return 0;
}

void Tree::closed(Inode& file) {
  if (file.status.links == 0 && file.opened.expired()) release(file);
}

bool Tree::remembers(const Inode* directory) const {
  return power_loss_ && directory != nullptr && !directory->volume->volume.memory_backed;
}

void Tree::record(NameChange change) {
  if (remembers(change.from_directory.get()) || remembers(change.to_directory.get()))
    unsynced_.push_back(std::move(change));
}

void Tree::apply(const NameChange& change) {
  if (change.from_directory) {
    auto& names = change.from_directory->durable_names;
    if (const auto found = names.find(change.from); found != names.end() && found->second == change.node) {
      names.erase(found);
    }
  }
  if (change.to_directory) change.to_directory->durable_names[change.to] = change.node;
}

void Tree::sync_file(Inode& file) const {
  if (!power_loss_ || file.volume->volume.memory_backed) return;
  file.durable.assign(file.bytes().begin(), file.bytes().end());
}

void Tree::sync_names(const InodePtr& directory) {
  std::vector<NameChange> left;
  for (auto& change : unsynced_) {
    // A rename is one change: it is kept with the directory that it ends in.
    const auto& decisive = change.to_directory ? change.to_directory : change.from_directory;
    if (decisive == directory) apply(change);
    else left.push_back(std::move(change));
  }
  unsynced_ = std::move(left);
}

void Tree::sync_all() {
  unsynced_.clear();
  const std::function<void(Inode&)> sync = [&](Inode& node) {
    if (node.is(Kind::file)) sync_file(node);
    node.durable_names.clear();
    if (remembers(&node)) node.durable_names = node.names;
    for (auto& [name, child] : node.names) sync(*child);
  };
  sync(*root_);
}

/// In place: every page is what it was at the last sync or what it is now, and so is the size.
void Tree::lose_pages(Inode& file, std::mt19937_64& random) {
  auto old = std::move(file.durable);
  const std::uint64_t new_size = file.status.size_bytes;
  const std::uint64_t kept_size = old.size() == new_size || (random() & 1U) != 0 ? new_size : old.size();
  const std::uint64_t larger = std::max<std::uint64_t>(old.size(), new_size);
  old.resize(larger);
  for (std::uint64_t at = 0; at < larger; at += kPageBytes) {
    const std::size_t length = std::min<std::uint64_t>(kPageBytes, larger - at);
    std::byte* now = file.memory->data() + at;
    if (std::memcmp(now, old.data() + at, length) != 0 && (random() & 1U) != 0)
      std::memcpy(now, old.data() + at, length);
  }
  if (kept_size < larger) std::memset(file.memory->data() + kept_size, 0, larger - kept_size);
  file.status.size_bytes = kept_size;
  file.backed_bytes = kept_size;
  file.beyond = {};
}

void Tree::recover_names(Inode& directory, std::mt19937_64& random, std::set<const Inode*>& seen) {
  if (directory.volume->volume.memory_backed) directory.durable_names.clear();
  directory.names = directory.durable_names;
  for (auto& [name, node] : directory.names) {
    if (!seen.insert(node.get()).second) continue;  // by half a rename a file may have two names
    release(*node);
    if (node->is(Kind::file)) lose_pages(*node, random);
    node->status.links = node->is(Kind::directory) ? 2 : 1;
    charge(*node);
    if (node->is(Kind::directory)) recover_names(*node, random, seen);
  }
}

void Tree::lose_power(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  for (const auto& change : unsynced_) {
    if ((random() & 1U) != 0) apply(change);
  }
  unsynced_.clear();
  const std::function<void(Inode&)> forget = [&](Inode& node) {
    release(node);
    for (auto& [name, child] : node.names) forget(*child);
  };
  forget(*root_);
  // A volume's own directory is created again by whoever mounts it.
  for (const auto& [prefix, mounted] : volumes_) {
    const Place place = find(prefix);
    if (place.node && place.directory && mounted->volume.memory_backed)
      place.directory->durable_names[place.name] = place.node;
  }
  std::set<const Inode*> seen;
  recover_names(*root_, random, seen);
  sync_all();
}

void Tree::drop_locks(std::optional<int> rank) {
  const std::function<void(Inode&)> drop = [&](Inode& node) {
    if (node.lock && (!rank || node.lock->rank == *rank)) node.lock.reset();
    for (auto& [name, child] : node.names) drop(*child);
  };
  drop(*root_);
}

}  // namespace kedge::faults

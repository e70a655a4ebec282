#include "store/node_store.hpp"

#include <algorithm>
#include <functional>
#include <set>
#include <string_view>
#include <utility>

#include "base/attempt.hpp"
#include "base/invariant.hpp"
#include "base/text.hpp"
#include "fs/tree.hpp"
#include "store/inspect.hpp"

namespace kedge::store {
namespace {

bool ascending(std::span<const int> ranks) {
  return std::adjacent_find(ranks.begin(), ranks.end(), std::greater_equal<>()) == ranks.end();
}

[[noreturn]] void throw_misuse(const std::string& message) { throw Error(ErrorCode::bad_state, message); }

}  // namespace

NodeStore::NodeStore(std::shared_ptr<fs::FileSystem> file_system, Options::Store options, Location location,
                     LogicalRank logical_rank)
    : logical_rank_(logical_rank),
      directory_(std::move(file_system), std::move(options), std::move(location), logical_rank,
                 [this] { return node_bytes(); }),
      own_{Slots(directory_, FileKind::container, logical_rank), Slots(directory_, FileKind::parity, logical_rank),
           Slots(directory_, FileKind::descriptor, logical_rank), Slots(directory_, FileKind::manifest, logical_rank)},
      adopted_(directory_) {
  const std::vector<FileName> names = directory_.list();
  for (Slots& slots : own_) slots.find(names);
}

void NodeStore::set_ranks_on_node(std::span<const int> ranks_on_node) {
  const Guard guard(mutex_);
  const auto me = static_cast<int>(logical_rank_.value);
  const auto found = std::find(ranks_on_node.begin(), ranks_on_node.end(), me);
  if (found == ranks_on_node.end() || !ascending(ranks_on_node)) {
    throw_misuse(compose("rank {} is not at its position in the list of its node's ranks", me));
  }
  adopted_.assign_share(ranks_on_node, static_cast<std::size_t>(found - ranks_on_node.begin()));
  ranks_on_node_.assign(ranks_on_node.begin(), ranks_on_node.end());
  directory_.set_process_count(ranks_on_node_.size());
}

std::optional<int> NodeStore::process_in_charge_of(LogicalRank logical_rank) const {
  if (ranks_on_node_.empty()) return std::nullopt;
  const auto rank = static_cast<int>(logical_rank.value);
  if (std::ranges::binary_search(ranks_on_node_, rank)) return rank;
  return ranks_on_node_[logical_rank.value % ranks_on_node_.size()];
}

std::vector<ScannedFile> NodeStore::scan(const Id128& run_id, Verify verify) {
  const Guard guard(mutex_);
  const std::vector<FileName> names = directory_.list();
  std::vector<ScannedFile> found;
  for (Slots& slots : own_) {
    slots.find(names);
    slots.scan(run_id, verify, found);
  }
  adopted_.find(names);
  adopted_.scan(run_id, verify, found);
  return found;
}

std::vector<ScannedFile> NodeStore::verify(const Id128& run_id, const Id128& commit_id,
                                           const SkippedFiles& skipped_files) {
  const Guard guard(mutex_);
  std::vector<ScannedFile> found;
  for (Slots& slots : own_) slots.verify(run_id, commit_id, skipped_files, found);
  adopted_.verify(run_id, commit_id, skipped_files.all, found);
  return found;
}

std::vector<PinnableFile> NodeStore::offered(const Id128& commit_id) {
  const Guard guard(mutex_);
  std::set<PinnableFile> files;
  for (std::size_t kind = 0; kind < kFileKinds; ++kind) {
    for (const FileKey& key : own_[kind].keys()) {
      if (key.commit_id == commit_id) files.insert({static_cast<FileKind>(kind), logical_rank_, key});
    }
  }
  adopted_.offered(commit_id, files);
  return {files.begin(), files.end()};
}

void NodeStore::reject(const PinnableFile& file) {
  const Guard guard(mutex_);
  Slot* slot = find_slot(file.kind, file.whose, file.key);
  if (slot == nullptr) return;
  slot->intact = false;
  if (file.kind == FileKind::parity && file.whose == logical_rank_) of(file.kind).remove(*slot);
}

Slot& NodeStore::begun_slot(const StoreFile& file) {
  Slot& slot = slot_of(file);
  const bool is_writing = slot.state == Slot::State::writing;
  if (!is_writing && slot.name.logical_rank != logical_rank_) throw_misuse("this rank must not write that file");
  invariant(is_writing, "only a file that was begun is sealed or given up");
  return slot;
}

Slot& NodeStore::slot_of(const StoreFile& file) {
  if (Slot* slot = adopted_.slot_of(file)) return *slot;
  for (Slots& slots : own_) {
    if (Slot* slot = slots.slot_of(file)) return *slot;
  }
  throw_misuse("that file is not one of this store's");
}

StoreFile& NodeStore::begin(FileKind kind, std::uint64_t expected_bytes) {
  const Guard guard(mutex_);
  return of(kind).begin(expected_bytes);
}

StoreFile& NodeStore::begin(FileKind kind, LogicalRank whose, std::uint64_t expected_bytes) {
  const Guard guard(mutex_);
  return whose == logical_rank_ ? begin(kind, expected_bytes) : adopted_.begin(kind, whose, expected_bytes);
}

void NodeStore::free_unused_storage() {
  const Guard guard(mutex_);
  for (Slots& slots : own_) slots.free_unused_storage();
  directory_.sweep();
}

void NodeStore::sealed(StoreFile& file, const FileKey& key, std::uint64_t generation) {
  const Guard guard(mutex_);
  Slots::sealed(begun_slot(file), key, generation);
}

void NodeStore::discard(StoreFile& file) {
  const Guard guard(mutex_);
  Slot& slot = begun_slot(file);
  if (slot.name.logical_rank == logical_rank_) of(slot.name.kind).discard(slot);
  else adopted_.discard(slot);
}

void NodeStore::retire_all_but(const IsKept& is_kept, std::uint64_t newest) {
  const Guard guard(mutex_);
  for (Slots& slots : own_) slots.retire_all_but(is_kept, newest);
  adopted_.remove_all_but(is_kept);
}

Slot* NodeStore::find_slot(FileKind kind, LogicalRank whose, const FileKey& key) noexcept {
  return whose == logical_rank_ ? of(kind).find_slot(key) : adopted_.find_slot(kind, whose, key);
}

void NodeStore::ignore_until_scan(const std::string& path) {
  const Guard guard(mutex_);
  for (Slots& slots : own_) slots.ignore_until_scan(path);
  adopted_.ignore_until_scan(path);
}

bool NodeStore::has_missing_files() const {
  const Guard guard(mutex_);
  return std::ranges::any_of(own_, [](const Slots& slots) { return slots.has_missing_files(); });
}

bool NodeStore::has(FileKind kind, LogicalRank whose, const FileKey& key) noexcept {
  const Guard guard(mutex_);
  return find_slot(kind, whose, key) != nullptr;
}

std::uint64_t NodeStore::size_bytes(FileKind kind, LogicalRank whose, const FileKey& key) {
  const Guard guard(mutex_);
  const Slot* slot = find_slot(kind, whose, key);
  return slot == nullptr ? 0 : slot->size_bytes(directory_);
}

std::vector<Id128> NodeStore::own_protections(const Id128& commit_id) {
  const Guard guard(mutex_);
  std::set<Id128> protections;
  for (const FileKind kind : {FileKind::parity, FileKind::descriptor}) {
    for (const FileKey& key : of(kind).keys()) {
      if (key.commit_id == commit_id) protections.insert(key.protection_id);
    }
  }
  return {protections.begin(), protections.end()};
}

std::optional<format::SetDescriptor> NodeStore::own_set(const FileKey& key) {
  const Guard guard(mutex_);
  Slot* descriptor = of(FileKind::descriptor).find_slot(key);
  if (descriptor == nullptr || of(FileKind::parity).find_slot(key) == nullptr) return std::nullopt;
  StoreFile& file = descriptor->opened(directory_);
  file.require_present();
  format::SetDescriptorBytes bytes{};
  file.bytes().read(0, bytes);
  return format::decode_set(bytes, file.path());
}

StoreFile& NodeStore::pin(FileKind kind, LogicalRank whose, const FileKey& key) {
  const Guard guard(mutex_);
  Slot* slot = find_slot(kind, whose, key);
  if (slot == nullptr) {
    throw Error(
        Failure{ErrorCode::not_found,
                compose("this store has no file of rank {} for commit {}", whose.value, to_string(key.commit_id)), -1,
                directory(), 0});
  }
  invariant(slot->state != Slot::State::writing, "a file that is being written is not pinned");
  StoreFile& file = slot->opened(directory_);
  file.require_present();
  ++slot->pins;
  return file;
}

void NodeStore::unpin(StoreFile& file) {
  const Guard guard(mutex_);
  Slot& slot = slot_of(file);
  if (slot.pins == 0) throw_misuse("a file of the node-local store is unpinned but was not pinned");
  --slot.pins;
}

std::string NodeStore::make_routed_directory() {
  const Guard guard(mutex_);
  fs::FileSystem& file_system = directory_.file_system();
  while (true) {
    std::string path = fs::join(directory(), compose("{}{}.{}", kRoutedPrefix, logical_rank_.value, routed_count_++));
    if (file_system.status(path)) continue;
    directory_.within([&] { file_system.make_directory(path, 0700); });
    return path;
  }
}

void NodeStore::sweep() {
  const Guard guard(mutex_);
  directory_.sweep();
  fs::FileSystem& file_system = directory_.file_system();
  const std::string mine = compose("{}{}.", kRoutedPrefix, logical_rank_.value);
  for (const std::string& name : file_system.list(directory())) {
    // A directory that cannot be removed must not prevent a start; make_routed_directory picks another number.
    if (name.starts_with(mine)) (void)attempt([&] { fs::remove_tree(file_system, fs::join(directory(), name)); });
  }
}

void NodeStore::remove_all() {
  const Guard guard(mutex_);
  for (Slots& slots : own_) slots.remove_all();
  if (!directory_.file_system().status(directory())) return;  // removed by another process
  adopted_.find(directory_.list());                           // for starts that never scanned
  adopted_.remove_all();
  sweep();
  directory_.make_names_durable();  // keeps removed files from reappearing
}

std::uint64_t NodeStore::additional_bytes(std::span<const PlannedFile> planned) const {
  const Guard guard(mutex_);
  std::uint64_t bytes = 0;
  for (std::size_t kind = 0; kind < kFileKinds; ++kind) {
    std::vector<std::uint64_t> sizes;
    for (const PlannedFile& file : planned) {
      if (file.kind != static_cast<FileKind>(kind)) continue;
      if (file.whose.value_or(logical_rank_) == logical_rank_) sizes.push_back(file.size_bytes);
      else bytes += file.size_bytes;
    }
    if (!sizes.empty()) bytes += own_[kind].additional_bytes(sizes);
  }
  return bytes;
}

std::uint64_t NodeStore::node_bytes() const {
  const Guard guard(mutex_);
  std::uint64_t bytes = own_bytes() + adopted_.begun_bytes() + routed_bytes();
  if (ranks_on_node_.size() <= 1) return bytes;
  for (const FileName& name : directory_.list()) {
    const auto whose = static_cast<int>(name.logical_rank.value);
    if (name.logical_rank == logical_rank_ || !std::ranges::binary_search(ranks_on_node_, whose)) continue;
    bytes += directory_.stored_bytes(name);
  }
  return bytes;
}

/// Skips files that vanish: the application writes them meanwhile, and other ranks remove theirs.
std::uint64_t NodeStore::routed_bytes() const {
  fs::FileSystem& file_system = directory_.file_system();
  std::uint64_t bytes = 0;
  for (const std::string& name : file_system.list(directory())) {
    if (!name.starts_with(kRoutedPrefix)) continue;
    (void)attempt([&] {
      for (const fs::TreeFile& file : fs::files_below(file_system, fs::join(directory(), name))) {
        bytes += file.status.allocated_bytes;
      }
    });
  }
  return bytes;
}

std::uint64_t NodeStore::own_bytes() const {
  const Guard guard(mutex_);
  std::uint64_t bytes = 0;
  for (const Slots& slots : own_) bytes += slots.used_bytes();
  return bytes;
}

}  // namespace kedge::store

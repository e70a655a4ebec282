#include "store/stored_files.hpp"

#include <algorithm>
#include <set>
#include <span>

#include "base/invariant.hpp"
#include "base/text.hpp"

namespace kedge::store {

std::vector<ScannedFile> StoredFiles::scan(const Id128& run_id, Verify verify) {
  const auto guard = slots_.lock();
  slots_.refresh(slots_.directory().list_files());
  std::vector<ScannedFile> found;
  for (const auto& slot : slots_.all_slots()) {
    if (slot->state != Slot::State::writing) found.push_back(slot->scan(slots_.directory(), run_id, verify));
  }
  return found;
}

std::vector<ScannedFile> StoredFiles::verify(const Id128& run_id, const Id128& commit_id,
                                             const SkippedFiles& skipped_files) {
  const auto guard = slots_.lock();
  const auto has = [](std::span<const FileKey> keys, const FileKey& key) {
    return std::ranges::find(keys, key) != keys.end();
  };
  std::vector<ScannedFile> found;
  for (const auto& slot : slots_.all_slots()) {
    const bool is_skipped =
        has(skipped_files.all, slot->key) || (slots_.is_own(*slot) && has(skipped_files.own, slot->key));
    if (slot->has_readable_of(commit_id) && !is_skipped) found.push_back(slot->verify(slots_.space(), run_id));
  }
  return found;
}

void StoredFiles::hide_until_scan(const std::string& path) {
  const auto guard = slots_.lock();
  for (const auto& slot : slots_.all_slots()) {
    if (slots_.directory().path_of(slot->name) == path) slot->is_intact = false;
  }
}

void StoredFiles::reject_file(const PinnableFile& file) {
  const auto guard = slots_.lock();
  Slot* slot = slots_.find_slot(file);
  if (slot == nullptr) return;
  slot->is_intact = false;
  if (file.kind == FileKind::parity && slots_.is_own(*slot) && slot->pin_count == 0) slots_.remove(*slot);
}

bool StoredFiles::has_missing_files() const {
  const auto guard = slots_.lock();
  const RunDirectory& directory = slots_.directory();
  return std::ranges::any_of(slots_.all_slots(), [&](const auto& slot) {
    const bool counts = slots_.is_own(*slot) && slot->state == Slot::State::sealed && slot->is_intact;
    return counts && !directory.file_system().status(directory.path_of(slot->name));
  });
}

std::vector<PinnableFile> StoredFiles::list_pinnable(const Id128& commit_id) const {
  const auto guard = slots_.lock();
  std::set<PinnableFile> files;
  for (const auto& slot : slots_.all_slots()) {
    if (slot->has_readable_of(commit_id)) files.insert({slot->name.kind, slot->name.logical_rank, slot->key});
  }
  return {files.begin(), files.end()};
}

bool StoredFiles::has_file(FileKind kind, LogicalRank owner, const FileKey& key) const {
  const auto guard = slots_.lock();
  return slots_.find_slot({kind, owner, key}) != nullptr;
}

std::uint64_t StoredFiles::size_bytes(FileKind kind, LogicalRank owner, const FileKey& key) const {
  const auto guard = slots_.lock();
  const Slot* slot = slots_.find_slot({kind, owner, key});
  return slot == nullptr ? 0 : slot->size_bytes(slots_.directory());
}

StoreFile& StoredFiles::pin(FileKind kind, LogicalRank owner, const FileKey& key) {
  const auto guard = slots_.lock();
  Slot* slot = slots_.find_slot({kind, owner, key});
  if (slot == nullptr) {
    throw Error(
        Failure{ErrorCode::not_found,
                compose("this store has no file of rank {} for commit {}", owner.value, to_string(key.commit_id)), -1,
                slots_.directory().path(), 0});
  }
  invariant(slot->state != Slot::State::writing, "a file that is being written is not pinned");
  StoreFile& file = slot->open_file(slots_.space());
  file.require_present();
  ++slot->pin_count;
  return file;
}

void StoredFiles::unpin(StoreFile& file) {
  const auto guard = slots_.lock();
  Slot& slot = slots_.slot_of(file);
  if (slot.pin_count == 0) {
    throw Error(ErrorCode::bad_state, "a file of the node-local store is unpinned but was not pinned");
  }
  --slot.pin_count;
}

}  // namespace kedge::store

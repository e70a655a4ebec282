#include "store/slots.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/attempt.hpp"
#include "base/invariant.hpp"

namespace kedge::store {
namespace {

constexpr int kTriesMax = 8;  // files that one begin tries

bool removable(const Slot& slot) noexcept {
  return slot.pins == 0 && (slot.state == Slot::State::free || slot.state == Slot::State::retired);
}

/// Whether the file may be written. A failed one may not, but stays if a later start might read it.
bool idle(const Slot& slot) noexcept { return removable(slot) && !slot.failed; }

/// Sorts idle files by how much is lost with them: a retired, intact one can still be offered.
auto loss_if_overwritten(const Slot& slot) noexcept {
  const bool retired = slot.state == Slot::State::retired;
  return std::tuple(retired && slot.intact, retired, retired ? slot.generation : 0);
}

}  // namespace

void Slots::find(std::span<const FileName> names) {
  const auto is_gone = [&](const auto& slot) {
    const bool is_idle = slot->pins == 0 && slot->state != Slot::State::writing;
    return is_idle && std::ranges::find(names, slot->name) == names.end();
  };
  std::erase_if(slots_, is_gone);
  for (const FileName& name : names) {
    if (name.kind != kind_ || name.logical_rank != owner_) continue;
    const bool known = std::any_of(slots_.begin(), slots_.end(), [&](const auto& slot) { return slot->name == name; });
    if (known) continue;
    slots_.push_back(std::make_unique<Slot>());
    slots_.back()->name = name;
  }
}

void Slots::scan(const Id128& run_id, Verify verify, std::vector<ScannedFile>& found) {
  for (const auto& slot : slots_) {
    if (slot->state != Slot::State::writing) found.push_back(slot->scan(directory_, run_id, verify));
  }
}

void Slots::verify(const Id128& run_id, const Id128& commit_id, const SkippedFiles& skipped_files,
                   std::vector<ScannedFile>& found) {
  const auto is_in = [](std::span<const FileKey> keys, const FileKey& key) {
    return std::ranges::find(keys, key) != keys.end();
  };
  for (const auto& slot : slots_) {
    const bool is_left_out = is_in(skipped_files.own, slot->key) || is_in(skipped_files.all, slot->key);
    if (slot->has_readable_of(commit_id) && !is_left_out) found.push_back(slot->verify(directory_, run_id));
  }
}

/// Whether overwriting `one` loses less, or else needs less new storage.
bool Slots::is_reused_before(const Slot& one, const Slot& other) const {
  if (loss_if_overwritten(one) != loss_if_overwritten(other))
    return loss_if_overwritten(one) < loss_if_overwritten(other);
  return one.size_bytes(directory_) > other.size_bytes(directory_);
}

Slot* Slots::idle_slot() const {
  Slot* best = nullptr;
  for (const auto& slot : slots_) {
    if (idle(*slot) && (best == nullptr || is_reused_before(*slot, *best))) best = slot.get();
  }
  return best;
}

bool Slots::begin_would_overwrite() const {
  const Slot* next = idle_slot();
  return next != nullptr && next->has_content() && next->intact;
}

std::uint64_t Slots::additional_bytes(std::span<const std::uint64_t> sizes) const {
  std::vector<const Slot*> next;
  for (const auto& slot : slots_) {
    if (idle(*slot)) next.push_back(slot.get());
  }
  std::ranges::sort(next, [this](const Slot* one, const Slot* other) { return is_reused_before(*one, *other); });
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const std::uint64_t has = i < next.size() ? next[i]->size_bytes(directory_) : 0;
    bytes += sizes[i] - std::min(sizes[i], has);
  }
  return bytes;
}

Slot& Slots::free_slot() {
  Slot* const idle = idle_slot();
  return idle != nullptr ? *idle : new_slot();
}

Slot& Slots::new_slot() {
  FileName name{kind_, owner_, 0};
  for (const auto& slot : slots_) name.number = std::max(name.number, slot->name.number + 1);
  auto slot = std::make_unique<Slot>();
  slot->name = name;
  slot->file = directory_.create(name);
  slots_.push_back(std::move(slot));
  return *slots_.back();
}

/// A file whose name was removed by another process must not be reused.
void Slots::replace_if_lost(Slot& slot) {
  if (slot.file && attempt([&] { slot.file->require_present(); })) {
    slot.file.reset();
    directory_.remove(slot.name);
  }
  if (slot.file || directory_.file_system().status(directory_.path_of(slot.name))) return;
  slot.file = directory_.create(slot.name);
}

/// Replaces a file with holes: opening it would fill them, up to a size that nobody vouches for. Also replaces one that
/// does not fit when opened. Its content may be lost, since it is idle.
StoreFile& Slots::opened_for_refill(Slot& slot) {
  const bool has_holes = !slot.file && directory_.location().memory_backed && directory_.has_holes(slot.name);
  if (!has_holes) {
    const auto failure = attempt([&] { (void)slot.opened(directory_); });
    if (!failure) return *slot.file;
    if (failure->code != ErrorCode::no_space) throw Error(*failure);
  }
  return replace(slot);
}

StoreFile& Slots::replace(Slot& slot) {
  slot.file.reset();
  directory_.remove(slot.name);
  slot.set_state(Slot::State::free);
  slot.key = {};
  slot.file = directory_.create(slot.name);
  return *slot.file;
}

/// Writing in place would change a hard-linked backup, too.
void Slots::replace_if_shared(Slot& slot) {
  if (slot.file->is_shared()) (void)replace(slot);
}

/// Opens and unseals a file. Tries others if that fails: a bad block or wrong permissions must not end all saves.
/// Throws the last failure.
Slot& Slots::begin_any() {
  for (int tries = 1;; ++tries) {
    const bool is_new = idle_slot() == nullptr;
    Slot& slot = free_slot();
    const auto not_opened = attempt([&] {
      replace_if_lost(slot);
      (void)opened_for_refill(slot);
      replace_if_shared(slot);
    });
    const auto is_last = [&](const Failure& failure) {
      return is_new || failure.code != ErrorCode::io || tries == kTriesMax;
    };
    if (not_opened) {
      if (is_last(*not_opened)) throw Error(*not_opened);
      slot.failed = true;
      continue;
    }
    // Syncs names for existing files, too: whoever made them may have died before syncing. A failure concerns the
    // directory, not this file.
    directory_.make_names_durable();
    const auto not_unsealed = attempt([&] { slot.file->unseal(); });
    if (!not_unsealed) return slot;
    // An unusable file is emptied or removed; if neither works, it is left alone.
    if (attempt([&] { discard(slot); })) slot.failed = true;
    if (is_last(*not_unsealed)) throw Error(*not_unsealed);
  }
}

StoreFile& Slots::begin(std::uint64_t expected_bytes) {
  Slot& slot = begin_any();
  StoreFile& file = *slot.file;
  const auto failure = attempt([&] { file.reserve(expected_bytes); });
  if (failure) {
    (void)attempt([&] { discard(slot); });  // retried when the slot is needed
    throw Error(*failure);
  }
  slot.set_state(Slot::State::writing);
  slot.key = {};
  return file;
}

void Slots::sealed(Slot& slot, const FileKey& key, std::uint64_t generation) {
  invariant(slot.state == Slot::State::writing && slot.file, "only a file that was begun is sealed");
  slot.set_state(Slot::State::sealed);
  slot.intact = true;
  slot.key = key;
  slot.generation = generation;
  slot.file->filled();
}

void Slots::preallocate(std::uint64_t size_bytes, const PreallocationTarget& wanted) {
  Slot* empty = nullptr;
  std::size_t ready = 0;
  for (const auto& slot : slots_) {
    if (!idle(*slot)) continue;
    if (slot->state != Slot::State::free || slot->size_bytes(directory_) != 0) ++ready;
    else empty = slot.get();
  }
  if (ready >= wanted.idle || count_with_storage() >= wanted.all) return;
  if (empty == nullptr && slots_.size() >= wanted.all) return;
  Slot& slot = empty != nullptr ? *empty : new_slot();
  const auto failure = attempt([&] {
    StoreFile& file = slot.opened(directory_);
    file.reserve(size_bytes);
    file.prefault();
  });
  if (!failure) return;
  // A partial reservation must not count as a ready file.
  slot.file.reset();
  directory_.remove(slot.name);
  std::erase_if(slots_, [&](const auto& each) { return each.get() == &slot; });
  throw Error(*failure);
}

std::size_t Slots::count_with_storage() const {
  const auto has_storage = [&](const auto& slot) { return slot->size_bytes(directory_) != 0; };
  return static_cast<std::size_t>(std::ranges::count_if(slots_, has_storage));
}

void Slots::free_unused_storage() {
  for (const auto& slot : slots_) {
    if (slot->state == Slot::State::free && slot->pins == 0 && slot->file) slot->file->empty();
  }
}

void Slots::discard(Slot& slot) {
  slot.set_state(Slot::State::free);
  slot.key = {};
  // A failed checkpoint's memory belongs to the application again.
  if (!attempt([&] { slot.file->empty(); })) return;
  // A file that cannot be unsealed is removed, or a scan would find it sealed.
  slot.file.reset();
  directory_.remove(slot.name);
  std::erase_if(slots_, [&](const auto& each) { return each.get() == &slot; });
}

void Slots::remove(Slot& slot) {
  if (slot.pins != 0) return;
  slot.file.reset();
  directory_.remove(slot.name);  // if it throws, the slot stays but offers nothing
  std::erase_if(slots_, [&](const auto& each) { return each.get() == &slot; });
}

/// Whether another file has the rebuilt content of this damaged one.
bool Slots::has_better(const Slot& slot) const {
  return !slot.intact && std::any_of(slots_.begin(), slots_.end(), [&](const auto& other) {
    return other.get() != &slot && other->has_readable(slot.key);
  });
}

void Slots::retire_all_but(const IsKept& is_kept, std::uint64_t newest) {
  for (const auto& slot : slots_) {
    if (!slot->has_content() || slot->generation > newest) continue;
    // A retired file may be kept again: it was opened, or newer ones turned out damaged.
    const bool kept = is_kept(slot->key) && !has_better(*slot);
    slot->set_state(kept ? Slot::State::sealed : Slot::State::retired);
  }
  remove_idle();
}

/// Keeps some idle files for the next writes and removes the rest. The newest retired ones stay, because scans can
/// still offer them.
void Slots::remove_idle() {
  std::vector<const Slot*> spared;
  for (const auto& slot : slots_) {
    if (removable(*slot)) spared.push_back(slot.get());
  }
  std::ranges::stable_sort(
      spared, [](const Slot* a, const Slot* b) { return loss_if_overwritten(*a) > loss_if_overwritten(*b); });
  if (spared.size() > idle_files_) spared.resize(idle_files_);
  for (auto slot = slots_.begin(); slot != slots_.end();) {
    if (!removable(**slot) || std::ranges::find(spared, slot->get()) != spared.end()) {
      ++slot;
      continue;
    }
    (*slot)->file.reset();
    directory_.remove((*slot)->name);  // if it throws, the slot stays for another try
    slot = slots_.erase(slot);
  }
}

void Slots::remove_all() {
  for (const auto& slot : slots_) {
    slot->file.reset();
    if (!directory_.is_foreign(slot->name)) directory_.remove(slot->name);
  }
  slots_.clear();
}

Slot* Slots::slot_of(const StoreFile& file) noexcept {
  const auto found =
      std::find_if(slots_.begin(), slots_.end(), [&](const auto& slot) { return slot->file.get() == &file; });
  return found == slots_.end() ? nullptr : found->get();
}

Slot* Slots::find_slot(const FileKey& key) noexcept {
  const auto found =
      std::find_if(slots_.begin(), slots_.end(), [&](const auto& slot) { return slot->has_readable(key); });
  return found == slots_.end() ? nullptr : found->get();
}

void Slots::ignore_until_scan(const std::string& path) {
  for (const auto& slot : slots_) {
    if (directory_.path_of(slot->name) == path) slot->intact = false;
  }
}

bool Slots::has_missing_files() const {
  return std::ranges::any_of(slots_, [&](const auto& slot) {
    const bool counts = slot->state == Slot::State::sealed && slot->intact;
    return counts && !directory_.file_system().status(directory_.path_of(slot->name));
  });
}

std::vector<FileKey> Slots::keys() const {
  std::vector<FileKey> keys;
  for (const auto& slot : slots_) {
    if (slot->has_content() && slot->intact) keys.push_back(slot->key);
  }
  return keys;
}

std::uint64_t Slots::used_bytes() const {
  std::uint64_t used = 0;
  for (const auto& slot : slots_) used += slot->size_bytes(directory_);
  return used;
}

}  // namespace kedge::store

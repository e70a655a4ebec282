#include "store/new_files.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "base/attempt.hpp"
#include "base/invariant.hpp"
#include "base/text.hpp"

namespace kedge::store {
namespace {

constexpr int kTriesMax = 8;  // files that one begin tries

StoreFile& replace_file(const StoreSpace& space, Slot& slot) {
  slot.file.reset();
  space.directory().remove(slot.name);
  slot.set_state(Slot::State::free);
  slot.key = {};
  slot.file = space.create(slot.name);
  return *slot.file;
}

}  // namespace

/// In the order in which they are begun: the first loses least, or else needs least new storage.
std::vector<Slot*> NewFiles::idle_slots(FileKind kind) const {
  std::vector<Slot*> idle = slots_.own_slots(kind);
  std::erase_if(idle, [](const Slot* slot) { return !slot->is_idle(); });
  std::ranges::stable_sort(idle, [this](const Slot* one, const Slot* other) {
    if (one->loss_if_overwritten() != other->loss_if_overwritten()) {
      return one->loss_if_overwritten() < other->loss_if_overwritten();
    }
    return one->size_bytes(slots_.directory()) > other->size_bytes(slots_.directory());
  });
  return idle;
}

/// A file whose name was removed by another process must not be reused.
void NewFiles::replace_if_lost(Slot& slot) const {
  const RunDirectory& directory = slots_.directory();
  if (slot.file && attempt([&] { slot.file->require_present(); })) {
    slot.file.reset();
    directory.remove(slot.name);
  }
  if (slot.file || directory.file_system().status(directory.path_of(slot.name))) return;
  slot.file = slots_.space().create(slot.name);
}

/// Replaces a file with holes: opening it would fill them, up to a size that nobody vouches for. Also replaces one that
/// does not fit when opened. Its content may be lost, since it is idle.
StoreFile& NewFiles::open_for_refill(Slot& slot) const {
  const RunDirectory& directory = slots_.directory();
  const bool has_holes = !slot.file && directory.memory_backed() && directory.has_holes(slot.name);
  if (has_holes) return replace_file(slots_.space(), slot);
  const auto failure = attempt([&] { (void)slot.open_file(slots_.space()); });
  if (!failure) return *slot.file;
  if (failure->code != ErrorCode::no_space) throw Error(*failure);
  return replace_file(slots_.space(), slot);
}

/// Opens and unseals a file. Tries others if that fails: a bad block or wrong permissions must not end all saves.
/// Throws the last failure.
Slot& NewFiles::begin_own(FileKind kind) {
  const RunDirectory& directory = slots_.directory();
  for (int tries = 1;; ++tries) {
    const std::vector<Slot*> idle = idle_slots(kind);
    Slot& slot = idle.empty() ? slots_.add_slot(kind, slots_.ranks().own_rank()) : *idle.front();
    const auto not_opened = attempt([&] {
      replace_if_lost(slot);
      // Writing in place would change a hard-linked backup, too.
      if (open_for_refill(slot).is_shared()) (void)replace_file(slots_.space(), slot);
    });
    const auto is_last = [&](const Failure& failure) {
      return idle.empty() || failure.code != ErrorCode::io || tries == kTriesMax;
    };
    if (not_opened) {
      if (is_last(*not_opened)) throw Error(*not_opened);
      slot.has_failed = true;
      continue;
    }
    // Syncs names for existing files, too: whoever made them may have died before syncing. A failure concerns the
    // directory, not this file.
    directory.sync_names();
    const auto not_unsealed = attempt([&] { slot.file->unseal(); });
    if (!not_unsealed) return slot;
    // An unusable file is emptied or removed; if neither works, it is left alone.
    if (attempt([&] { discard_file(slot); })) slot.has_failed = true;
    if (is_last(*not_unsealed)) throw Error(*not_unsealed);
  }
}

Slot& NewFiles::begin_adopted(FileKind kind, LogicalRank owner) {
  if (!slots_.ranks().adopts(owner)) {
    throw Error(ErrorCode::bad_state, compose("this process must not make a file of rank {}", owner.value));
  }
  return slots_.add_slot(kind, owner);
}

StoreFile& NewFiles::begin_file(const PlannedFile& file) {
  const auto guard = slots_.lock();
  const LogicalRank owner = file.owner.value_or(slots_.ranks().own_rank());
  Slot& slot = owner == slots_.ranks().own_rank() ? begin_own(file.kind) : begin_adopted(file.kind, owner);
  const auto failure = attempt([&] {
    if (!slots_.is_own(slot)) slots_.directory().sync_names();
    slot.file->reserve(file.size_bytes);
  });
  if (failure) {
    (void)attempt([&] { discard_file(slot); });  // retried when the slot is needed
    throw Error(*failure);
  }
  slot.set_state(Slot::State::writing);
  slot.key = {};
  return *slot.file;
}

Slot& NewFiles::begun_slot(const StoreFile& file) const {
  Slot& slot = slots_.slot_of(file);
  const bool is_writing = slot.state == Slot::State::writing;
  if (!is_writing && !slots_.is_own(slot)) throw Error(ErrorCode::bad_state, "this rank must not write that file");
  invariant(is_writing, "only a file that was begun is sealed or given up");
  return slot;
}

void NewFiles::mark_sealed(StoreFile& file, const FileKey& key, std::uint64_t generation) {
  const auto guard = slots_.lock();
  Slot& slot = begun_slot(file);
  slot.set_state(Slot::State::sealed);
  slot.is_intact = true;
  slot.key = key;
  slot.generation = generation;
  file.mark_filled();
}

void NewFiles::discard_file(StoreFile& file) {
  const auto guard = slots_.lock();
  discard_file(begun_slot(file));
}

void NewFiles::discard_file(Slot& slot) {
  slot.set_state(Slot::State::free);
  slot.key = {};
  // A failed checkpoint's memory belongs to the application again. An own file that cannot be unsealed is removed, or a
  // scan would find it sealed.
  if (slots_.is_own(slot) && !attempt([&] { slot.file->unseal_and_free(); })) return;
  slots_.remove(slot);
}

std::uint64_t NewFiles::additional_bytes(std::span<const PlannedFile> planned) const {
  const auto guard = slots_.lock();
  std::uint64_t bytes = 0;
  std::array<std::vector<Slot*>, kFileKindCount> idle;
  for (std::size_t kind = 0; kind < kFileKindCount; ++kind) {
    idle[kind] = idle_slots(static_cast<FileKind>(kind));
    std::ranges::reverse(idle[kind]);
  }
  for (const PlannedFile& file : planned) {
    std::vector<Slot*>& next = idle[static_cast<std::size_t>(file.kind)];
    const bool is_own = file.owner.value_or(slots_.ranks().own_rank()) == slots_.ranks().own_rank();
    std::uint64_t has = 0;
    if (is_own && !next.empty()) {
      has = next.back()->size_bytes(slots_.directory());
      next.pop_back();
    }
    bytes += file.size_bytes - std::min(file.size_bytes, has);
  }
  return bytes;
}

bool NewFiles::begin_would_overwrite(FileKind kind) const {
  const auto guard = slots_.lock();
  const std::vector<Slot*> idle = idle_slots(kind);
  return !idle.empty() && idle.front()->has_content() && idle.front()->is_intact;
}

void NewFiles::preallocate(FileKind kind, std::uint64_t size_bytes, const PreallocationTarget& wanted) {
  const auto guard = slots_.lock();
  const RunDirectory& directory = slots_.directory();
  const std::vector<Slot*> own = slots_.own_slots(kind);
  Slot* empty = nullptr;
  std::size_t ready = 0;
  std::size_t with_storage = 0;
  for (Slot* slot : own) {
    const bool has_storage = slot->size_bytes(directory) != 0;
    if (has_storage) ++with_storage;
    if (!slot->is_idle()) continue;
    if (slot->state != Slot::State::free || has_storage) ++ready;
    else empty = slot;
  }
  if (ready >= wanted.idle_count || with_storage >= wanted.total_count) return;
  if (empty == nullptr && own.size() >= wanted.total_count) return;
  Slot& slot = empty != nullptr ? *empty : slots_.add_slot(kind, slots_.ranks().own_rank());
  const auto failure = attempt([&] {
    StoreFile& file = slot.open_file(slots_.space());
    file.reserve(size_bytes);
    file.prefault();
  });
  if (!failure) return;
  slots_.remove(slot);  // a partial reservation must not count as a ready file
  throw Error(*failure);
}

}  // namespace kedge::store

#include "store/slots.hpp"

#include <algorithm>
#include <utility>

namespace kedge::store {

Slots::Slots(const StoreSpace& space, const NodeRanks& ranks) : space_(space), ranks_(ranks) {
  std::vector<FileName> names = directory().list_files();
  std::erase_if(names, [&](const FileName& name) { return name.logical_rank != ranks_.own_rank(); });
  refresh(names);
}

std::vector<Slot*> Slots::own_slots(FileKind kind) const {
  std::vector<Slot*> own;
  for (const auto& slot : slots_) {
    if (is_own(*slot) && slot->name.kind == kind) own.push_back(slot.get());
  }
  return own;
}

void Slots::insert(std::unique_ptr<Slot> slot) {
  const auto group = [this](const std::unique_ptr<Slot>& one) {
    return is_own(*one) ? static_cast<std::size_t>(one->name.kind) : kFileKindCount;
  };
  slots_.insert(std::ranges::upper_bound(slots_, group(slot), {}, group), std::move(slot));
}

void Slots::refresh(std::span<const FileName> names) {
  std::erase_if(slots_, [&](const auto& slot) {
    const bool is_used = slot->pin_count != 0 || slot->state == Slot::State::writing;
    return !is_used && std::ranges::find(names, slot->name) == names.end();
  });
  for (const FileName& name : names) {
    if (name.logical_rank != ranks_.own_rank() && !ranks_.adopts(name.logical_rank)) continue;
    if (std::ranges::any_of(slots_, [&](const auto& slot) { return slot->name == name; })) continue;
    auto slot = std::make_unique<Slot>();
    slot->name = name;
    insert(std::move(slot));
  }
}

Slot& Slots::add_slot(FileKind kind, LogicalRank owner) {
  auto slot = std::make_unique<Slot>();
  slot->name = {kind, owner, 0};
  for (const auto& other : slots_) {
    if (other->name.kind != kind || other->name.logical_rank != owner) continue;
    slot->name.number = std::max(slot->name.number, other->name.number + 1);
  }
  slot->file = space_.create(slot->name);
  slot->is_made_here = true;
  Slot& added = *slot;
  insert(std::move(slot));
  return added;
}

Slot* Slots::find_slot(const PinnableFile& file) const noexcept {
  const auto found = std::ranges::find_if(slots_, [&](const auto& slot) {
    return slot->name.kind == file.kind && slot->name.logical_rank == file.owner && slot->has_readable(file.key);
  });
  return found == slots_.end() ? nullptr : found->get();
}

Slot& Slots::slot_of(const StoreFile& file) const {
  const auto found = std::ranges::find_if(slots_, [&](const auto& slot) { return slot->file.get() == &file; });
  if (found == slots_.end()) throw Error(ErrorCode::bad_state, "that file is not one of this store's");
  return **found;
}

std::uint64_t Slots::used_bytes() const {
  const auto guard = lock();
  std::uint64_t used = 0;
  for (const auto& slot : slots_) used += slot->size_bytes(directory());
  return used;
}

}  // namespace kedge::store

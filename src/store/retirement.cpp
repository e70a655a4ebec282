#include "store/retirement.hpp"

#include <algorithm>
#include <vector>

#include "base/attempt.hpp"

namespace kedge::store {
namespace {

/// Whether another of these files has the rebuilt content of this damaged one.
bool has_better(const std::vector<Slot*>& slots, const Slot& slot) {
  return !slot.is_intact &&
         std::ranges::any_of(slots, [&](const Slot* other) { return other != &slot && other->has_readable(slot.key); });
}

}  // namespace

void Retirement::set_idle_file_count(FileKind kind, std::size_t files) {
  const auto guard = slots_.lock();
  idle_file_counts_[static_cast<std::size_t>(kind)] = files;
}

void Retirement::retire_all_but(const IsKept& is_kept, std::uint64_t newest) {
  const auto guard = slots_.lock();
  for (std::size_t kind = 0; kind < kFileKindCount; ++kind) {
    const std::vector<Slot*> own = slots_.own_slots(static_cast<FileKind>(kind));
    for (Slot* slot : own) {
      if (!slot->has_content() || slot->generation > newest) continue;
      // A retired file may be kept again: it was opened, or newer ones turned out damaged.
      const bool kept = is_kept(slot->key) && !has_better(own, *slot);
      slot->set_state(kept ? Slot::State::sealed : Slot::State::retired);
    }
    remove_idle(static_cast<FileKind>(kind));
  }
  // Removes free adopted files, too: their owner is not here to use them again.
  slots_.remove_if([&](const Slot& slot) {
    const bool is_used =
        slot.pin_count != 0 || slot.state == Slot::State::writing || slot.state == Slot::State::foreign;
    return !slots_.is_own(slot) && !is_used && !(slot.has_content() && is_kept(slot.key));
  });
}

/// Keeps some idle files for the next writes and removes the rest. The newest retired ones stay, because scans can
/// still offer them.
void Retirement::remove_idle(FileKind kind) {
  std::vector<Slot*> removed = slots_.own_slots(kind);
  std::erase_if(removed, [](const Slot* slot) { return !slot->is_removable(); });
  std::ranges::stable_sort(
      removed, [](const Slot* a, const Slot* b) { return a->loss_if_overwritten() > b->loss_if_overwritten(); });
  const std::size_t spared = std::min(removed.size(), idle_file_counts_[static_cast<std::size_t>(kind)]);
  removed.erase(removed.begin(), removed.begin() + static_cast<std::ptrdiff_t>(spared));
  slots_.remove_if([&](const Slot& slot) { return std::ranges::find(removed, &slot) != removed.end(); });
}

std::size_t Retirement::remove_adopted(const Id128& commit_id) {
  const auto guard = slots_.lock();
  const std::size_t before = slots_.all_slots().size();
  slots_.remove_if([&](const Slot& slot) {
    return !slots_.is_own(slot) && slot.pin_count == 0 && slot.has_content() && slot.key.commit_id == commit_id;
  });
  return before - slots_.all_slots().size();
}

void Retirement::free_unused_storage() {
  const auto guard = slots_.lock();
  for (const auto& slot : slots_.all_slots()) {
    const bool is_unused = slots_.is_own(*slot) && slot->state == Slot::State::free && slot->pin_count == 0;
    if (is_unused && slot->file) slot->file->unseal_and_free();
  }
  slots_.space().remove_reservations();
}

void retire_superseded(Retirement& retirement, commits::Ledger& ledger, std::uint32_t store_keep, RetireScope reach,
                       const Log& log) {
  const commits::RetentionPlan plan = ledger.retire_superseded(store_keep);
  const auto is_kept = [&](const FileKey& key) { return plan.is_kept(key.commit_id, key.protection_id); };
  const std::uint64_t newest = reach == RetireScope::all ? UINT64_MAX : plan.newest_generation;
  if (const auto failure = attempt([&] { retirement.retire_all_but(is_kept, newest); })) {
    log.warning("an older container could not be retired (will retry at the next commit or open): " +
                to_string(*failure));
  }
}

}  // namespace kedge::store

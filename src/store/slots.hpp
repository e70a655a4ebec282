// The files that this process keeps in the run's directory on its node, with their state.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "store/node_ranks.hpp"
#include "store/slot.hpp"

namespace kedge::store {

/// Own files, of this process's rank, are reused in turn. Adopted ones, of ranks that do not run on this node, are read
/// and removed here but written only once: if their owner returns, it alone may reuse them. Callers, and users of a
/// slot, must hold lock().
class Slots {
 public:
  /// Has the own files in the directory, unscanned. Adopts none before the first refresh().
  Slots(const StoreSpace& space, const NodeRanks& ranks);

  /// Recursive: while a file takes storage, the space asks for the used bytes.
  [[nodiscard]] std::lock_guard<std::recursive_mutex> lock() const {
    return std::lock_guard<std::recursive_mutex>(mutex_);
  }
  [[nodiscard]] const StoreSpace& space() const noexcept { return space_; }
  [[nodiscard]] const RunDirectory& directory() const noexcept { return space_.directory(); }
  [[nodiscard]] const NodeRanks& ranks() const noexcept { return ranks_; }

  /// Own files by kind, then adopted ones.
  [[nodiscard]] std::span<const std::unique_ptr<Slot>> all_slots() const noexcept { return slots_; }
  [[nodiscard]] std::vector<Slot*> own_slots(FileKind kind) const;
  [[nodiscard]] bool is_own(const Slot& slot) const noexcept { return slot.name.logical_rank == ranks_.own_rank(); }

  /// Takes over this process's files in `names`, which must be complete, and drops those that are gone.
  void refresh(std::span<const FileName> names);
  /// Creates a new file. Throws no_space, io.
  Slot& add_slot(FileKind kind, LogicalRank owner);
  /// Removes the files that satisfy `condition`. Throws io, and then keeps the slots that are left.
  template <class Condition>
  void remove_if(Condition&& condition) {
    for (auto slot = slots_.begin(); slot != slots_.end();) {
      if (!condition(**slot)) {
        ++slot;
        continue;
      }
      (*slot)->file.reset();
      directory().remove((*slot)->name);
      slot = slots_.erase(slot);
    }
  }
  void remove(const Slot& slot) {
    remove_if([&](const Slot& other) { return &other == &slot; });
  }

  /// The sealed, intact file; null if there is none.
  [[nodiscard]] Slot* find_slot(const PinnableFile& file) const noexcept;
  /// Throws Error{bad_state} if the file is none of these.
  [[nodiscard]] Slot& slot_of(const StoreFile& file) const;
  [[nodiscard]] std::uint64_t used_bytes() const;

 private:
  void insert(std::unique_ptr<Slot> slot);

  const StoreSpace& space_;
  const NodeRanks& ranks_;
  mutable std::recursive_mutex mutex_;
  std::vector<std::unique_ptr<Slot>> slots_;
};

}  // namespace kedge::store

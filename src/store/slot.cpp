#include "store/slot.hpp"

#include <utility>

#include "base/attempt.hpp"
#include "base/invariant.hpp"

namespace kedge::store {

void Slot::set_state(State next) {
  if (next == state) return;
  switch (state) {
    case State::free: invariant(next != State::retired, "only a sealed file is retired"); break;
    case State::writing:
      invariant(next == State::sealed || next == State::free, "a file that is being written is sealed or given up");
      break;
    case State::sealed:
      invariant(next == State::retired || next == State::foreign, "a sealed file that counts is not overwritten");
      break;
    case State::retired: break;
    case State::foreign: invariant(next == State::free, "a foreign file is neither written nor sealed"); break;
  }
  invariant(next != State::writing || pin_count == 0, "a pinned file is not overwritten");
  state = next;
}

StoreFile& Slot::open_file(const StoreSpace& space) {
  if (!file) file = space.open(name);
  return *file;
}

ScannedFile Slot::scan(const RunDirectory& directory, const Id128& run_id, Verify verify) {
  close_if_lost();
  return apply_inspection(inspect_file(directory, name, run_id, verify));
}

/// Closes the file if its name was removed or replaced, since the scan must see the current one.
void Slot::close_if_lost() {
  if (file && pin_count == 0 && attempt([&] { file->require_present(); })) file.reset();
}

ScannedFile Slot::verify(const StoreSpace& space, const Id128& run_id) {
  StoreFile* in_memory = map_file(space);
  return apply_inspection(
      inspect_file(space.directory(), name, run_id, Verify::all, in_memory == nullptr ? nullptr : &in_memory->bytes()));
}

/// The file if it is mapped. Null says nothing about the file, which is then read by calls; errors are reported where
/// it must be open.
StoreFile* Slot::map_file(const StoreSpace& space) {
  if (!space.directory().memory_backed()) return nullptr;
  close_if_lost();
  const auto failure = attempt([&] { open_file(space).require_present(); });
  return failure || !file->is_mapped() ? nullptr : file.get();
}

ScannedFile Slot::apply_inspection(Inspection inspection) {
  invariant(state != State::writing, "a file that is being written is not scanned");
  if (inspection.is_foreign) {
    set_state(State::foreign);
    file.reset();
    return std::move(inspection.scanned_file);
  }
  if (state == State::foreign) set_state(State::free);  // the foreign file is gone
  has_failed = has_failed || inspection.has_failed;
  const auto found = inspection.scanned_file.key();
  is_intact = inspection.scanned_file.intact;
  if (found) {
    if (state == State::free) set_state(State::sealed);
    key = *found;
    generation = inspection.scanned_file.generation();
  }
  return std::move(inspection.scanned_file);
}

std::uint64_t Slot::size_bytes(const RunDirectory& directory) const {
  return file ? file->size_bytes() : directory.stored_bytes(name);
}

}  // namespace kedge::store

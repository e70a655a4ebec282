#include "store/slot.hpp"

#include <utility>

#include "base/attempt.hpp"

namespace kedge::store {

StoreFile& Slot::opened(const RunDirectory& directory) {
  if (!file) file = directory.open(name);
  return *file;
}

Held Slot::scan(const RunDirectory& directory, const Id128& run_id, Verify verify) {
  return take_over(inspect(directory, name, run_id, verify));
}

Held Slot::verify(const RunDirectory& directory, const Id128& run_id) {
  StoreFile* in_memory = mapped(directory);
  return take_over(inspect(directory, name, run_id, Verify::all, in_memory == nullptr ? nullptr : &in_memory->bytes()));
}

/// The file, if its bytes can be read where they lie. Null is no verdict: it is read by calls, and what keeps it from
/// being opened is told by whoever needs it open.
StoreFile* Slot::mapped(const RunDirectory& directory) {
  if (!directory.location().memory_backed) return nullptr;
  const auto present = [&] { opened(directory).check_present(); };
  auto failure = attempt(present);
  if (failure && file && pins == 0) {  // it was removed, or another one took its name: that one is to be looked at
    file.reset();
    failure = attempt(present);
  }
  return failure || file->mapped().empty() ? nullptr : file.get();
}

Held Slot::take_over(Inspection inspection) {
  if (inspection.foreign) {
    state = State::foreign;
    file.reset();
    return std::move(inspection.held);
  }
  if (state == State::foreign) state = State::free;  // what was there has gone since
  const auto found = inspection.held.key();
  intact = inspection.held.intact;
  if (found) {
    if (state == State::free) state = State::sealed;
    key = *found;
    generation = inspection.held.generation();
  }
  return std::move(inspection.held);
}

std::uint64_t Slot::size_bytes(const RunDirectory& directory) const {
  if (file) return file->size_bytes();
  const auto status = directory.file_system().status(directory.path_of(name));
  return status ? status->size_bytes : 0;
}

}  // namespace kedge::store

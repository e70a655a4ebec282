#include "store/slot.hpp"

#include <utility>

#include "store/inspect.hpp"

namespace kedge::store {

StoreFile& Slot::opened(const RunFolder& folder) {
  if (!file) file = folder.open(name);
  return *file;
}

Held Slot::scan(const RunFolder& folder, const Id128& run_id, Verify verify) {
  Inspection inspection = inspect(folder, name, run_id, verify);
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

std::uint64_t Slot::size_bytes(const RunFolder& folder) const {
  if (file) return file->size_bytes();
  const auto status = folder.file_system().status(folder.path_of(name));
  return status ? status->size_bytes : 0;
}

}  // namespace kedge::store

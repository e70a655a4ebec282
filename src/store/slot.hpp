// One file of the node-local store and its state in this process.
#pragma once

#include <cstdint>
#include <memory>
#include <tuple>

#include "store/inspect.hpp"
#include "store/scanned_file.hpp"
#include "store/store_space.hpp"

namespace kedge::store {

struct Slot {
  enum class State : std::uint8_t {
    free,     ///< unsealed or unreadable
    writing,  ///< between begin and sealed or discard
    sealed,
    retired,  ///< still sealed and offered by scans, until a file is needed
    foreign,  ///< something that is not this user's file: left alone
  };

  /// Changes the state; throws BrokenInvariant for an impossible transition.
  void set_state(State next);

  FileName name;
  State state = State::free;  ///< change it with set_state()
  std::uint32_t pin_count = 0;
  bool has_failed = false;    ///< could not be opened, read or begun: not written again in this start
  bool is_intact = false;     ///< result of the last scan, or sealed since
  bool is_made_here = false;  ///< created by this start
  FileKey key;
  std::uint64_t generation = 0;
  std::unique_ptr<StoreFile> file;  ///< opened when first needed, then kept open

  [[nodiscard]] bool has_content() const noexcept { return state == State::sealed || state == State::retired; }
  /// Whether the file is readable and has this key.
  [[nodiscard]] bool has_readable(const FileKey& wanted) const noexcept {
    return has_content() && is_intact && key == wanted;
  }
  /// Whether the file is readable and belongs to this commit, whatever its kind.
  [[nodiscard]] bool has_readable_of(const Id128& commit_id) const noexcept {
    return has_content() && is_intact && key.commit_id == commit_id;
  }
  [[nodiscard]] bool is_removable() const noexcept {
    return pin_count == 0 && (state == State::free || state == State::retired);
  }
  /// Whether the file may be written. A failed one may not, but stays if a later start might read it.
  [[nodiscard]] bool is_idle() const noexcept { return is_removable() && !has_failed; }
  /// Sorts idle files by how much is lost with them: a retired, intact one can still be offered.
  [[nodiscard]] auto loss_if_overwritten() const noexcept {
    const bool is_retired = state == State::retired;
    return std::tuple(is_retired && is_intact, is_retired, is_retired ? generation : 0);
  }
  /// Throws Error{not_found | io}.
  [[nodiscard]] StoreFile& open_file(const StoreSpace& space);
  /// Reads the file again and stores the result in this slot.
  [[nodiscard]] ScannedFile scan(const RunDirectory& directory, const Id128& run_id, Verify verify);
  /// Reads every byte and stores the result in this slot. Mapped files are read in place, which leaves the bytes in the
  /// cache for the next reader.
  [[nodiscard]] ScannedFile verify(const StoreSpace& space, const Id128& run_id);
  /// 0 if the file is gone.
  [[nodiscard]] std::uint64_t size_bytes(const RunDirectory& directory) const;

 private:
  void close_if_lost();
  [[nodiscard]] StoreFile* map_file(const StoreSpace& space);
  [[nodiscard]] ScannedFile apply_inspection(Inspection inspection);
};

}  // namespace kedge::store

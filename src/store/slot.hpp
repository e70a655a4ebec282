// One file of the node-local store, as this process knows it.
#pragma once

#include <cstdint>
#include <memory>

#include "store/inspect.hpp"
#include "store/run_directory.hpp"
#include "store/scanned_file.hpp"
#include "store/store_file.hpp"

namespace kedge::store {

struct Slot {
  enum class State : std::uint8_t {
    free,     ///< unsealed, or nothing that can be read
    writing,  ///< between begin and sealed or discard
    sealed,
    retired,  ///< still sealed, still offered by a scan, and overwritten when a file is needed
    foreign,  ///< the name is taken by something that is not ours: neither read nor written nor removed
  };

  /// The only way from one state to another; throws BrokenInvariant if it is none.
  void set_state(State next);

  FileName name;
  State state = State::free;  ///< changed by become()
  std::uint32_t pins = 0;
  bool failed = false;  ///< the file could not be opened, read or begun: it is not written again in this start
  bool intact = false;  ///< as far as the last scan looked; what was sealed since is
  FileKey key;
  std::uint64_t generation = 0;
  std::unique_ptr<StoreFile> file;  ///< opened when first needed, then kept open

  [[nodiscard]] bool has_content() const noexcept { return state == State::sealed || state == State::retired; }
  /// Whether a readable file of this key lies here.
  [[nodiscard]] bool has_readable(const FileKey& wanted) const noexcept {
    return has_content() && intact && key == wanted;
  }
  /// Whether a readable file of this commit lies here, whatever its kind.
  [[nodiscard]] bool has_readable_of(const Id128& commit_id) const noexcept {
    return has_content() && intact && key.commit_id == commit_id;
  }
  /// Throws Error{not_found | io}.
  [[nodiscard]] StoreFile& opened(const RunDirectory& directory);
  /// Looks into the file anew and takes over what is found.
  [[nodiscard]] ScannedFile scan(const RunDirectory& directory, const Id128& run_id, Verify verify);
  /// Reads every byte where it lies and takes over what is found: bytes in the cache are not fetched again by the next
  /// reader.
  [[nodiscard]] ScannedFile verify(const RunDirectory& directory, const Id128& run_id);
  /// 0 if it is gone.
  [[nodiscard]] std::uint64_t size_bytes(const RunDirectory& directory) const;

 private:
  void close_if_lost();
  [[nodiscard]] StoreFile* mapped(const RunDirectory& directory);
  [[nodiscard]] ScannedFile apply(Inspection inspection);
};

}  // namespace kedge::store

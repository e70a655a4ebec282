// Frees the storage of superseded commits on this node.
#pragma once

#include <array>
#include <cstdint>

#include "base/log.hpp"
#include "commits/ledger.hpp"
#include "store/slots.hpp"

namespace kedge::store {

/// Which files stay on the store, and for what. All calls are local and thread-safe. Pinned files stay.
class Retirement {
 public:
  explicit Retirement(Slots& slots) : slots_(slots) { idle_file_counts_.fill(1); }

  /// Sets how many idle files of a kind stay, instead of one: several may be begun before one is retired.
  void set_idle_file_count(FileKind kind, std::size_t files);
  /// Allows overwriting own sealed files whose key is not kept and whose generation is at most `newest`, and removes
  /// excess idle files. Removes adopted files whose key is not kept or that are unreadable.
  void retire_all_but(const IsKept& is_kept, std::uint64_t newest = UINT64_MAX);
  /// Removes this commit's adopted files, once their owners have copies; returns how many. Throws io, perhaps after
  /// some were removed.
  std::size_t remove_adopted(const Id128& commit_id);
  /// Frees the storage of own files without content. Throws io.
  void free_unused_storage();

 private:
  void remove_idle(FileKind kind);

  Slots& slots_;
  std::array<std::size_t, kFileKindCount> idle_file_counts_{};
};

/// Which files may be retired.
enum class RetireScope : std::uint8_t {
  all,    ///< all that the ledger does not need
  known,  ///< all but newer ones than the ledger's newest: another thread may be sealing them
};

/// Local. Retires the files of superseded commits according to the ledger, but never those of the commit that was
/// opened or made last. Never throws; failures are retried next time.
void retire_superseded(Retirement& retirement, commits::Ledger& ledger, std::uint32_t store_keep, RetireScope reach,
                       const Log& log);

}  // namespace kedge::store

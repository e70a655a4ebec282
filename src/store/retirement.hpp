// Frees the storage of superseded commits on this node.
#pragma once

#include <cstdint>

#include "base/log.hpp"
#include "commits/ledger.hpp"
#include "store/node_store.hpp"

namespace kedge::store {

/// Which files may be retired.
enum class RetireScope : std::uint8_t {
  all,    ///< all that the ledger does not need
  known,  ///< all but newer ones than the ledger's newest: another thread may be sealing them
};

/// Local. Retires the files of superseded commits according to the ledger, but never those of the commit that was
/// opened or made last. Never throws; failures are retried next time.
void retire_superseded(NodeStore& store, commits::Ledger& ledger, std::uint32_t keep, RetireScope reach,
                       const Log& log);

}  // namespace kedge::store

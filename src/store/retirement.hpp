// Frees what older commits hold on this node.
#pragma once

#include <cstdint>

#include "base/log.hpp"
#include "commits/ledger.hpp"
#include "store/node_store.hpp"

namespace kedge::store {

/// Which files may be retired.
enum class RetireScope : std::uint8_t {
  all,    ///< all that no commit of the ledger needs
  known,  ///< but none that is newer than the newest commit of the ledger: another thread may be sealing it
};

/// Local. Retires the files of commits that newer ones supersede, as the ledger says, but never those of the commit
/// that was opened or made last. Never throws: what could not be freed is tried again next time.
void retire_superseded(NodeStore& store, commits::Ledger& ledger, std::uint32_t keep, RetireScope reach,
                       const Log& log);

}  // namespace kedge::store

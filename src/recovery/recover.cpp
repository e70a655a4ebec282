#include "recovery/recover.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "recovery/fetch.hpp"
#include "recovery/rebuild.hpp"
#include "recovery/relocate.hpp"

namespace kedge::recovery {

Recovered recover(Communicator& communicator, store::NodeStore& store, const Orders& orders,
                  const RecoverySettings& settings) {
  Recovered recovered;
  relocate(communicator, store, orders.moves, settings, recovered);
  rebuild(communicator, store, orders.sets, settings, recovered);
  fetch(communicator, store, orders.fetches, settings, recovered);
  return recovered;
}

}  // namespace kedge::recovery

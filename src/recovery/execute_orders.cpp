#include "recovery/execute_orders.hpp"

namespace kedge::recovery {

Recovered execute_orders(const comm::Group& group, store::NodeStore& store, const Orders& orders,
                         const RecoverySettings& settings) {
  Recovered recovered;
  relocate(group, store, orders.moves, settings, recovered);
  rebuild(group, store, orders.sets, settings, recovered);
  fetch(group, store, orders.fetches, settings, recovered);
  return recovered;
}

}  // namespace kedge::recovery

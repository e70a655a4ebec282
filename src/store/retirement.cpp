#include "store/retirement.hpp"

#include "base/attempt.hpp"

namespace kedge::store {

void retire_superseded(NodeStore& store, commits::Ledger& ledger, std::uint32_t keep, RetireScope reach,
                       const Log& log) {
  const commits::RetentionPlan plan = ledger.retire(keep);
  const auto is_kept = [&](const FileKey& key) { return plan.keeps(key.commit_id, key.protection_id); };
  const std::uint64_t newest = reach == RetireScope::all ? UINT64_MAX : plan.newest;
  if (const auto failure = attempt([&] { store.retire_all_but(is_kept, newest); })) {
    log.warning("an older container could not be retired (will retry at the next commit or open): " +
                to_string(*failure));
  }
}

}  // namespace kedge::store

// Outputs that are not on the prefix yet, after a node was lost.
#include <cstdint>
#include <string>
#include <vector>

#include "base/attempt.hpp"
#include "base/text.hpp"
#include "recovery/recovery.hpp"

namespace kedge::recovery {

/// COLLECTIVE. Tags of outputs that are to be flushed and of which some rank lacks its container; the newest of each
/// tag.
std::vector<Tag> Recovery::incomplete_outputs() const {
  const std::vector<CommitHead> outputs = storage_.ledger.known().outputs_to_flush();
  std::uint64_t count = outputs.size();
  group_.broadcast(count);
  std::vector<Tag> tags;
  for (std::uint64_t at = 0; at < count; ++at) {
    Tag tag = group_.is_root() ? outputs[at].tag : Tag();
    Id128 id = group_.is_root() ? outputs[at].id : Id128();
    group_.broadcast(tag);
    group_.broadcast(id);
    const auto newest = storage_.ledger.known().find(tag);
    const bool is_newest = newest && newest->commit.id == id;
    const bool has_container =
        storage_.store.files.has_file(store::FileKind::container, group_.logical_rank(), {id, {}});
    if (group_.all(is_newest) && !group_.all(has_container)) tags.push_back(tag);
  }
  return tags;
}

void Recovery::recover_outputs() {
  for (const Tag& tag : incomplete_outputs()) {
    try {
      (void)open(Selection(tag), Newer::keep);
    } catch (const Error& error) {
      if (comm::ends_communication(error.code())) throw;
      if (!group_.is_root()) continue;
      log_.warning(compose("the output {} is not complete in the stores, and is not flushed: {}", tag,
                           to_string(error.failure())));
    }
  }
}

}  // namespace kedge::recovery

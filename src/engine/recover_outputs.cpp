#include "engine/recover_outputs.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "base/attempt.hpp"
#include "base/text.hpp"

namespace kedge::engine {
namespace {

bool has_container(const Parts& parts, const Id128& commit_id) {
  return parts.store().has(store::FileKind::container, parts.group.logical_rank(), {commit_id, {}});
}

/// COLLECTIVE. Tags of outputs that are to be flushed and of which some rank lacks its container; the newest of each
/// tag.
std::vector<Tag> incomplete_outputs(const Parts& parts) {
  const std::vector<CommitHead> outputs = parts.ledger.known().outputs_to_flush();
  std::uint64_t count = outputs.size();
  parts.group.broadcast(count);
  std::vector<Tag> tags;
  for (std::uint64_t at = 0; at < count; ++at) {
    Tag tag = parts.group.is_root() ? outputs[at].tag : Tag();
    Id128 id = parts.group.is_root() ? outputs[at].id : Id128();
    parts.group.broadcast(tag);
    parts.group.broadcast(id);
    const auto newest = parts.ledger.known().find(tag);
    const bool is_newest = newest && newest->commit.id == id;
    if (parts.group.all(is_newest) && !parts.group.all(has_container(parts, id))) tags.push_back(tag);
  }
  return tags;
}

}  // namespace

void recover_outputs(const Parts& parts) {
  for (const Tag& tag : incomplete_outputs(parts)) {
    try {
      (void)parts.recovery.open(Selection(tag), Newer::keep);
    } catch (const Error& error) {
      if (comm::ends_communication(error.code())) throw;
      if (!parts.group.is_root()) continue;
      parts.setup.log.warning(compose("the output {} is not complete in the stores, and is not flushed: {}", tag,
                                      to_string(error.failure())));
    }
  }
}

}  // namespace kedge::engine

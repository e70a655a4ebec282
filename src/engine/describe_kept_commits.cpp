#include "engine/describe_kept_commits.hpp"

#include <string_view>
#include <vector>

#include "base/text.hpp"

namespace kedge::engine {

std::string describe_kept_commits(const commits::Ledger& ledger, std::uint32_t keep, bool has_work_left) {
  if (const auto outputs = ledger.known().unflushed_outputs(); !outputs.empty()) {
    return compose("; {} of the outputs, from {} on, {} in the store until flushed to the prefix", outputs.size(),
                   outputs.front().tag, outputs.size() == 1 ? "stays" : "stay");
  }
  const std::vector<commits::Entry> kept = ledger.known().entries;
  std::string_view why;
  if (kept.size() > keep && has_work_left) why = "until the background work on them is done";
  if (ledger.known().ids_to_keep(keep).size() > keep) why = "because none of them is protected yet";
  return why.empty() ? std::string() : compose("; {} stays beside newer commits {}", kept.back().commit.tag, why);
}

}  // namespace kedge::engine

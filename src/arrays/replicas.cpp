#include "arrays/replicas.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "arrays/saved_names.hpp"
#include "base/hash.hpp"
#include "base/text.hpp"
#include "comm/vote.hpp"

namespace kedge::arrays {
namespace {

bool is_replicated(const format::StoredRegion& region) {
  return std::holds_alternative<Replicated>(region.spec.placement);
}

Failure describe_difference(const std::string& name, LogicalRank lower, LogicalRank higher) {
  return Failure{ErrorCode::mismatch,
                 compose("region '{}' is Replicated, and its bytes on rank {} differ from those on rank {}: save it "
                         "without Replicated if each rank has its own, or give it the same value on all ranks",
                         name, higher.value, lower.value)};
}

}  // namespace

std::uint64_t digest_of(const Replicas& replicas) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < replicas.regions.size(); ++i) {
    if (!is_replicated(replicas.regions[i])) continue;
    sum += fnv1a(std::as_bytes(replicas.checksums(i)), fnv1a(replicas.regions[i].spec.name));
  }
  return sum;
}

std::optional<Failure> find_difference(const comm::Group& group, const Replicas& replicas) {
  try {
    std::vector<NameToFind> names;
    std::vector<SavedRegion> mine;
    group.run_on_all_ranks([&] {
      for (std::size_t i = 0; i < replicas.regions.size(); ++i) {
        if (!is_replicated(replicas.regions[i])) continue;
        names.push_back({replicas.regions[i].spec.name});
        mine.push_back({replicas.regions[i].spec, replicas.checksums(i), group.logical_rank()});
      }
    });
    const std::vector<SavedName> saved = find_saved_names(group, names, mine);
    for (std::size_t i = 0; i < saved.size(); ++i) {
      if (saved[i].unlike) return describe_difference(names[i].name, saved[i].unlike->first, saved[i].unlike->second);
    }
    return std::nullopt;
  } catch (const Error& error) {
    if (comm::ends_communication(error.code())) throw;
    return error.failure();
  }
}

}  // namespace kedge::arrays

#include "store/check_space_on_nodes.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/attempt.hpp"
#include "base/text.hpp"
#include "comm/wire.hpp"

namespace kedge::store {
namespace {

/// A limit, and the bytes that its ranks need.
struct Demand {
  std::uint64_t free_bytes = 0;
  std::string limit;
  std::uint64_t needed_bytes = 0;
  int ranks = 0;
};

/// A rank's need and its limits, for the gather.
std::vector<std::byte> pack_demands(const StoreSpace& space, std::uint64_t additional_bytes) {
  const std::vector<fs::SpaceLimit> space_limits = space.limits();
  comm::Packer packer;
  packer.put(additional_bytes);
  for (const fs::SpaceLimit& room : space_limits) {
    packer.put(room.id);
    packer.put(room.free_bytes);
    packer.put(std::string_view(room.limit));
  }
  return packer.take();
}

void add_demands(std::span<const std::byte> message, std::map<std::uint64_t, Demand>& demands) {
  comm::Unpacker unpacker(message);
  const auto needed = unpacker.get<std::uint64_t>();
  while (!unpacker.empty()) {
    const auto id = unpacker.get<std::uint64_t>();
    const auto free_bytes = unpacker.get<std::uint64_t>();
    auto limit = unpacker.get_text();
    const auto [at, is_new] = demands.try_emplace(id, Demand{free_bytes, std::move(limit), 0, 0});
    Demand& demand = at->second;
    demand.free_bytes = std::min(demand.free_bytes, free_bytes);
    demand.needed_bytes += needed;
    ++demand.ranks;
  }
}

/// Throws for the limit that is exceeded most.
void require_space(const std::map<std::uint64_t, Demand>& demands, const std::string& directory) {
  const auto excess = [](const auto& one) {
    const Demand& demand = one.second;
    return demand.needed_bytes - std::min(demand.needed_bytes, demand.free_bytes);
  };
  const auto worst = std::ranges::max_element(demands, {}, excess);
  if (worst == demands.end() || excess(*worst) == 0) return;
  const Demand& demand = worst->second;
  const std::string left = human_bytes(demand.free_bytes);
  const std::string rest =
      demand.limit == kQuotaLimitName
          ? compose("{} leaves {}; raise it by {}, or save less per rank", kQuotaLimitName, left,
                    human_bytes(demand.needed_bytes - demand.free_bytes))
          : compose(
                "{} is free ({}); save less per rank, run fewer ranks per node, or set store.path to a larger "
                "filesystem",
                left, demand.limit);
  throw Error(Failure{ErrorCode::no_space,
                      compose("the {} on this node need{} {} more in the node-local store, but {}",
                              demand.ranks == 1 ? "rank" : compose("{} ranks", demand.ranks),
                              demand.ranks == 1 ? "s" : "", human_bytes(demand.needed_bytes), rest),
                      -1, directory, 0});
}

}  // namespace

std::optional<Failure> check_space_on_nodes(const comm::Group& group, const NodeStore& store,
                                            std::uint64_t additional_bytes) {
  const std::span<const int> on_node = store.ranks.ranks_on_node();
  const int lowest = on_node.empty() ? group.rank() : on_node.front();
  std::vector<Communicator::Message> messages;
  auto local = attempt([&] { messages.push_back({lowest, pack_demands(store.space, additional_bytes)}); });
  const auto told = group.exchange(std::move(messages));
  if (!local) {
    local = attempt([&] {
      std::map<std::uint64_t, Demand> demands;
      for (const Communicator::Message& one : told) add_demands(one.bytes, demands);
      require_space(demands, store.directory.path());
    });
  }
  return group.vote(local);
}

}  // namespace kedge::store

#include "engine/collective_load.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "base/text.hpp"
#include "format/on_disk.hpp"

namespace kedge::engine {
namespace {

using recovery::Holding;

arrays::Want to_want(const Want& want) {
  arrays::Want to{want.name, want.region.dtype, std::string(want.region.members), want.region.shape, arrays::OnlyOne{}};
  if (const auto* shard = std::get_if<Shard>(&want.placement)) to.from = *shard;
  else if (std::holds_alternative<Replicated>(want.placement)) to.from = Replicated{};
  else if (want.of) to.from = *want.of;
  return to;
}

/// The regions of all holdings, and where they are.
struct Offered {
  std::vector<arrays::Offer> offers;
  std::vector<std::pair<const Holding*, const format::StoredRegion*>> places;
};

Offered offers_of(const OpenCheckpoint& checkpoint) {
  Offered offered;
  for (const Holding& holding : checkpoint.holdings) {
    for (const format::StoredRegion& placed : holding.container().regions()) {
      if (format::is_attributes_region(placed.spec) || placed.spec.is_routed) continue;
      offered.offers.push_back({placed.spec.name, placed.spec.dtype, placed.spec.members, placed.spec.shape,
                                placed.spec.placement, holding.logical_rank().value, holding.is_in_store()});
      offered.places.emplace_back(&holding, &placed);
    }
  }
  return offered;
}

/// Reads blocks of the holdings, and of others' where they lie on the prefix.
class BlockReader {
 public:
  BlockReader(const OpenCheckpoint& checkpoint, const CommitHead& commit, const Offered& offered)
      : checkpoint_(checkpoint), commit_(commit), offered_(offered) {
    for (const Holding& holding : checkpoint.holdings) by_rank_[holding.logical_rank()] = &holding;
  }

  void read(const arrays::BlockToRead& block, std::span<std::byte> to) {
    if (!block.region.is_in_store) {
      const Holding& holding = on_prefix(LogicalRank{block.region.logical_rank});
      return holding.container().read_block(find(holding, block.region.name), number_of(block), to);
    }
    const auto& [holding, placed] = offered_.places.at(block.region.offer);
    holding->container().read_block(*placed, number_of(block), to);
    if (checkpoint_.unproven) checkpoint_.unproven->mark_read(*placed, number_of(block));
  }

 private:
  static std::uint64_t number_of(const arrays::BlockToRead& block) { return block.offset / format::kBlockBytes; }

  const Holding& on_prefix(LogicalRank logical_rank) {
    const Holding*& holding = by_rank_[logical_rank];
    if (holding == nullptr) {
      opened_.push_back(std::make_unique<Holding>(
          Holding::on_prefix(*checkpoint_.prefix, checkpoint_.directory, commit_, logical_rank)));
      holding = opened_.back().get();
    }
    return *holding;
  }

  [[nodiscard]] static const format::StoredRegion& find(const Holding& holding, const std::string& name) {
    const format::StoredRegion* placed = holding.container().find_region(name);
    if (placed != nullptr) return *placed;
    throw Error(Failure{ErrorCode::corrupt,
                        compose("it has no region '{}' for one process, though another found it there", name), -1,
                        holding.path(), 0});
  }

  const OpenCheckpoint& checkpoint_;
  const CommitHead& commit_;
  const Offered& offered_;
  std::map<LogicalRank, const Holding*> by_rank_;
  std::vector<std::unique_ptr<Holding>> opened_;
};

std::uint64_t bytes_of(const MutableRegion& region) {
  std::uint64_t elements = 0;
  if (!element_count(region.shape, elements)) return 0;
  return elements * size_bytes(region.dtype);
}

std::optional<Failure> check_memory(const Want& want, device::Devices& devices) {
  if (bytes_of(want.region) == 0) return std::nullopt;
  if (want.region.data == nullptr) {
    return Failure{ErrorCode::invalid_argument, compose("region '{}': no memory is given to load into", want.name)};
  }
  if (devices.location_of(want.region.data).kind == device::MemoryLocation::Kind::host) return std::nullopt;
  return Failure{
      ErrorCode::invalid_argument,
      compose("region '{}': load_all fills host memory; load into a buffer and copy that to the device", want.name)};
}

/// Bytes would come in any order.
std::optional<Failure> find_overlap(std::span<const Want> wants) {
  std::vector<std::pair<const std::byte*, const Want*>> by_address;
  for (const Want& want : wants) {
    if (bytes_of(want.region) != 0) by_address.emplace_back(static_cast<const std::byte*>(want.region.data), &want);
  }
  std::ranges::sort(by_address);
  for (std::size_t i = 1; i < by_address.size(); ++i) {
    const auto& [begin, before] = by_address[i - 1];
    if (begin + bytes_of(before->region) <= by_address[i].first) continue;
    return Failure{ErrorCode::invalid_argument,
                   compose("regions '{}' and '{}' are to be loaded into the same memory; give each its own",
                           before->name, by_address[i].second->name)};
  }
  return std::nullopt;
}

}  // namespace

std::optional<Failure> check(std::span<const Want> wants, device::Devices& devices) {
  for (const Want& want : wants) {
    if (auto wrong = check_memory(want, devices)) return wrong;
    if (auto wrong = arrays::check(to_want(want))) return wrong;
  }
  return find_overlap(wants);
}

arrays::LoadCounts load_all(const comm::Group& group, const OpenCheckpoint& checkpoint, const CommitHead& commit,
                            std::span<const Want> wants, std::uint64_t buffer_bytes) {
  std::vector<arrays::Want> to_plan;
  Offered offered;
  group.run_on_all_ranks([&] {
    for (const Want& want : wants) to_plan.push_back(to_want(want));
    offered = offers_of(checkpoint);
  });
  BlockReader reader(checkpoint, commit, offered);
  arrays::LoadInput input{to_plan, offered.offers, commit.world_size, buffer_bytes, arrays::kRowsPerBatch, {}, {}, {}};
  input.read = [&](const arrays::BlockToRead& block, std::span<std::byte> to) { reader.read(block, to); };
  input.memory = [&](std::uint32_t want) { return static_cast<std::byte*>(wants[want].region.data); };
  input.deliver = [&](const arrays::Delivery& delivery) {
    arrays::copy_to_memory(delivery, input.memory(delivery.want));
  };
  return arrays::load_all(group, input);
}

std::vector<arrays::SavedName> find_saved(const comm::Group& group, const OpenCheckpoint& checkpoint,
                                          std::span<const arrays::NameToFind> names) {
  std::vector<arrays::SavedRegion> mine;
  group.run_on_all_ranks([&] {
    for (const Holding& holding : checkpoint.holdings) {
      for (const format::StoredRegion& placed : holding.container().regions()) {
        if (format::is_attributes_region(placed.spec) || placed.spec.is_routed) continue;
        mine.push_back({placed.spec, holding.container().checksums(placed), holding.logical_rank()});
      }
    }
  });
  return arrays::find_saved_names(group, names, mine);
}

}  // namespace kedge::engine

#include "arrays/global_arrays.hpp"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "arrays/wants.hpp"
#include "base/attempt.hpp"
#include "base/hash.hpp"
#include "base/invariant.hpp"
#include "base/text.hpp"
#include "comm/wire.hpp"

namespace kedge::arrays {
namespace {

// Records between processes of one job, never stored. `own` is only compared with what is shared under its
// name; `also` is for the view alone: a shared region that this rank has as well.
enum class Kind : std::uint8_t { shard, replicated, group, own, also };
constexpr Kind kLastKind = Kind::also;

struct Record {
  Kind kind = Kind::group;
  std::uint32_t rank = 0;
  SharedRegion region;
};

void put(comm::Packer& packer, Kind kind, std::uint32_t rank, const SharedRegion& region) {
  packer.put(kind, kLastKind);
  packer.put(rank);
  packer.put(std::string_view(region.name));
  if (kind == Kind::group || kind == Kind::also) return;
  packer.put(region.dtype, kLastDataType);
  packer.put(std::string_view(region.members));
  packer.put(region.shape);
  if (kind != Kind::shard) return;
  packer.put(region.shard->global_shape);
  packer.put(region.shard->offset);
  packer.put(region.shard->holes_allowed);
}

Record get_record(comm::Unpacker& unpacker) {
  Record record;
  record.kind = unpacker.get_enum(kLastKind);
  record.rank = unpacker.get<std::uint32_t>();
  record.region.name = unpacker.get_text();
  if (record.kind == Kind::group || record.kind == Kind::also) return record;
  record.region.dtype = unpacker.get_enum(kLastDataType, DataType::int8);
  record.region.members = unpacker.get_text();
  record.region.shape = unpacker.get_shape();
  if (record.kind != Kind::shard) return record;
  Shard shard;
  shard.global_shape = unpacker.get_shape();
  shard.offset = unpacker.get_shape();
  shard.holes_allowed = unpacker.get_bool();
  record.region.shard = shard;
  return record;
}

Failure mismatch(std::string message) { return Failure{ErrorCode::mismatch, std::move(message), -1, {}, 0}; }

Kind kind_of(const SharedRegion& region) { return region.shard ? Kind::shard : Kind::replicated; }

/// Every group that the name lies in: "a" and "a/b" for "a/b/c".
template <class Visit>
void for_each_group(std::string_view name, Visit&& visit) {
  for (auto slash = name.find('/'); slash != std::string_view::npos; slash = name.find('/', slash + 1)) {
    visit(std::string(name.substr(0, slash)));
  }
}

std::string describe_own(const SharedRegion& region) {
  return compose("a region of that rank alone, {} of shape {}", describe_elements(region.dtype, region.members),
                 to_string(region.shape));
}

std::string describe(const SharedRegion& region) {
  if (!region.shard)
    return compose("replicated {} of shape {}", describe_elements(region.dtype, region.members),
                   to_string(region.shape));
  return compose("a shard of {} of global shape {}{}", describe_elements(region.dtype, region.members),
                 to_string(region.shard->global_shape), region.shard->holes_allowed ? " with holes allowed" : "");
}

bool agree(const SharedRegion& a, const SharedRegion& b) {
  if (kind_of(a) != kind_of(b) || a.dtype != b.dtype || a.members != b.members) return false;
  if (!a.shard) return a.shape == b.shape;
  return a.shard->global_shape == b.shard->global_shape && a.shard->holes_allowed == b.shard->holes_allowed;
}

/// By name: the same structure gives the same file, whichever process was home to what.
format::ManifestView view_of(const std::vector<Communicator::Message>& messages, bool lists_ranks) {
  std::map<std::string, format::ManifestView::Array> arrays;
  std::map<std::string, format::ManifestView::Replica> replicas;
  format::ManifestView view;
  if (lists_ranks) view.rank_regions.emplace();
  for (const auto& message : messages) {
    for (comm::Unpacker unpacker(message.bytes); !unpacker.empty();) {
      const auto [kind, rank, region] = get_record(unpacker);
      if (kind == Kind::own || kind == Kind::also) {
        invariant(lists_ranks, "regions of ranks are sent only where they are listed");
        view.rank_regions->push_back(
            {rank, region.name, region.dtype, region.shape, kind == Kind::also, region.members});
      }
      if (kind == Kind::replicated) {
        replicas.try_emplace(
            region.name, format::ManifestView::Replica{region.name, rank, region.dtype, region.shape, region.members});
      }
      if (kind != Kind::shard) continue;
      format::ManifestView::Array& array = arrays[region.name];
      array.name = region.name;
      array.dtype = region.dtype;
      array.members = region.members;
      array.global_shape = region.shard->global_shape;
      array.holes_allowed = region.shard->holes_allowed;
      array.blocks.push_back({rank, region.shard->offset, region.shape});
    }
  }
  for (auto& [name, array] : arrays) view.arrays.push_back(std::move(array));
  for (auto& [name, replica] : replicas) view.replicas.push_back(std::move(replica));
  return view;
}

[[nodiscard]] bool is_own(const format::RegionSpec& spec) {
  return std::holds_alternative<std::monostate>(spec.placement);
}

/// Kedge's own regions are not listed.
void put_listed(comm::Packer& packer, std::uint32_t rank, std::span<const format::StoredRegion> regions) {
  for (const format::StoredRegion& region : regions) {
    const format::RegionSpec& spec = region.spec;
    if (format::is_attributes_region(spec)) continue;
    put(packer, is_own(spec) ? Kind::own : Kind::also, rank,
        {spec.name, spec.dtype, spec.shape, std::nullopt, spec.members});
  }
}

}  // namespace

NameBits shared_names(std::span<const format::StoredRegion> regions) {
  NameBits names{};
  for (const format::StoredRegion& region : regions) {
    if (!is_own(region.spec)) add_name(names, region.spec.name);
  }
  return names;
}

ComparedContainers compare_containers(const comm::Group& group, bool changed, const NameBits& names,
                                      std::uint64_t replicas) {
  constexpr std::size_t kChanged = std::tuple_size_v<NameBits>, kDigest = kChanged + 1, kInverse = kDigest + 1;
  std::array<std::uint64_t, kInverse + 1> words{};
  std::ranges::copy(names, words.begin());
  words[kChanged] = changed ? 1 : 0;
  words[kDigest] = replicas;
  words[kInverse] = ~replicas;
  words = group.bit_or(words);
  ComparedContainers compared;
  compared.has_replicas = words[kDigest] != 0;
  compared.replicas_are_equal =
      (words[kDigest] & words[kInverse]) == 0;  // no bit is set on one rank and clear on another
  if (words[kChanged] != 0) std::copy_n(words.begin(), names.size(), compared.names.emplace().begin());
  return compared;
}

std::vector<SharedRegion> own_regions_among(const NameBits& names, std::span<const format::StoredRegion> regions) {
  std::vector<SharedRegion> own;
  for (const format::StoredRegion& region : regions) {
    const format::RegionSpec& spec = region.spec;
    if (!is_own(spec) || !may_have(names, spec.name)) continue;
    own.push_back({spec.name, spec.dtype, spec.shape, std::nullopt, spec.members});
  }
  return own;
}

std::vector<SharedRegion> shared_regions(std::span<const format::StoredRegion> regions) {
  std::vector<SharedRegion> shared;
  for (const format::StoredRegion& region : regions) {
    const format::RegionSpec& spec = region.spec;
    const auto* shard = std::get_if<Shard>(&spec.placement);
    if (shard == nullptr && !std::holds_alternative<Replicated>(spec.placement)) continue;
    shared.push_back(
        {spec.name, spec.dtype, spec.shape, shard == nullptr ? std::nullopt : std::optional(*shard), spec.members});
  }
  return shared;
}

GlobalArrays GlobalArrays::exchange(const comm::Group& group, std::span<const SharedRegion> mine,
                                    std::span<const SharedRegion> own) {
  const auto me = static_cast<std::uint32_t>(group.rank());
  std::map<int, comm::Packer> packed;
  const auto home = [&](std::string_view name) { return static_cast<int>(fnv1a(name) % group.world_size()); };
  std::set<std::string> groups;
  for (const SharedRegion& region : mine) {
    put(packed[home(region.name)], kind_of(region), me, region);
    for_each_group(region.name, [&](std::string name) { groups.insert(std::move(name)); });
  }
  for (const SharedRegion& region : own) put(packed[home(region.name)], Kind::own, me, region);
  for (const std::string& name : groups) put(packed[home(name)], Kind::group, me, {name, {}, {}, {}, {}});
  std::vector<Communicator::Message> messages;
  messages.reserve(packed.size());
  for (auto& [peer, packer] : packed) messages.push_back({peer, packer.take()});

  GlobalArrays arrays;
  const std::vector<Communicator::Message> arrived = group.exchange(std::move(messages));
  arrays.unreadable_ = attempt([&] { arrays.add_messages(arrived); });
  return arrays;
}

void GlobalArrays::add_messages(const std::vector<Communicator::Message>& messages) {
  for (const auto& message : messages) {
    for (comm::Unpacker unpacker(message.bytes); !unpacker.empty();) {
      auto [kind, rank, region] = get_record(unpacker);
      HomedName& homed = homed_[region.name];
      if (kind == Kind::group) homed.group_of = rank;
      else if (kind == Kind::own && !homed.own) homed.own = Part{rank, std::move(region)};
      else if (kind != Kind::own) homed.regions.push_back({rank, std::move(region)});
    }
  }
}

std::optional<Failure> GlobalArrays::check() const {
  if (unreadable_) return unreadable_;
  for (const auto& [name, homed] : homed_) {
    if (auto failure = check(name, homed)) return failure;
  }
  return std::nullopt;
}

std::optional<Failure> GlobalArrays::check(const std::string& name, const HomedName& homed) {
  if (homed.regions.empty()) return std::nullopt;
  const Part& first = homed.regions.front();
  if (homed.group_of) {
    return mismatch(
        compose("region '{0}' of rank {1} is also a group: rank {2} saves a region whose name starts with "
                "'{0}/'; rename one of them",
                name, first.rank, *homed.group_of));
  }
  const auto disagree = [&](std::uint32_t rank, const std::string& description) {
    return mismatch(
        compose("ranks {0} and {1} disagree about region '{2}': on rank {0} it is {3}, on rank {1} {4}; save it "
                "alike on all ranks, or rename one of them",
                first.rank, rank, name, describe(first.region), description));
  };
  if (homed.own) return disagree(homed.own->rank, describe_own(homed.own->region));
  std::vector<format::SavedBlock> blocks;
  for (const Part& part : homed.regions) {
    if (!agree(first.region, part.region)) return disagree(part.rank, describe(part.region));
    if (part.region.shard) blocks.push_back({part.rank, part.region.shard->offset, part.region.shape});
  }
  if (!first.region.shard) return std::nullopt;
  return format::check_cover(name, first.region.shard->global_shape, std::move(blocks),
                             first.region.shard->holes_allowed);
}

std::optional<format::ManifestView> GlobalArrays::gather(const comm::Group& group, std::uint64_t view_shards_max,
                                                         std::span<const format::StoredRegion> mine) const {
  std::uint64_t shards = 0;
  for (const auto& [name, homed] : homed_) shards += homed.regions.size();
  if (group.sum(shards) > view_shards_max) return std::nullopt;
  const bool lists_ranks = group.sum(mine.size()) <= std::min(view_shards_max, kListedRegionsMax);
  comm::Packer packer;
  if (lists_ranks) put_listed(packer, static_cast<std::uint32_t>(group.rank()), mine);
  for (const auto& [name, homed] : homed_) {
    for (const Part& part : homed.regions) {
      put(packer, kind_of(part.region), part.rank, part.region);
      if (!part.region.shard) break;  // one rank's stands for all
    }
  }
  std::vector<Communicator::Message> messages;
  if (!packer.empty()) messages.push_back({0, packer.take()});
  const std::vector<Communicator::Message> arrived = group.exchange(std::move(messages));
  format::ManifestView view;
  group.run_on_all_ranks([&] { view = view_of(arrived, lists_ranks); });
  return view;
}

}  // namespace kedge::arrays

#include "arrays/saved_names.hpp"

#include <map>
#include <string_view>
#include <utility>

#include "arrays/checked_messages.hpp"
#include "arrays/name_bits.hpp"
#include "base/hash.hpp"
#include "comm/wire.hpp"

namespace kedge::arrays {
namespace {

using Messages = std::vector<Communicator::Message>;

constexpr std::uint32_t kNoRank = ~std::uint32_t{0};

/// How the ranks whose containers some processes read saved a name.
struct Summary {
  LookUp look_up = LookUp::of_rank;
  ArrayType type;
  std::uint32_t regions = 0;
  std::uint64_t digest = 0;        ///< of the bytes of the lowest rank's region
  std::uint32_t lowest_rank = 0;   ///< that saved it
  std::uint32_t unlike = kNoRank;  ///< a rank that saved it unlike the lowest one

  void add(Summary other) {
    if (regions == 0 || (other.regions != 0 && other.lowest_rank < lowest_rank)) std::swap(*this, other);
    if (other.regions == 0) return;
    const bool is_equal = look_up == other.look_up && type == other.type && digest == other.digest;
    if (unlike == kNoRank) unlike = is_equal ? other.unlike : other.lowest_rank;
    regions += other.regions;
  }
};
using Summaries = std::map<NameToFind, Summary>;

Summary summary_of(const SavedRegion& region) {
  const format::RegionSpec& spec = region.spec;
  Summary summary;
  summary.type = {spec.dtype, spec.members, spec.shape};
  if (const auto* shard = std::get_if<Shard>(&spec.placement)) {
    summary.look_up = LookUp::shard;
    summary.type.shape = shard->global_shape;
  } else if (std::holds_alternative<Replicated>(spec.placement)) {
    summary.look_up = LookUp::replicated;
  }
  summary.regions = 1;
  summary.digest = fnv1a(std::as_bytes(region.checksums));
  summary.lowest_rank = region.logical_rank.value;
  return summary;
}

int home_of(std::string_view name, const comm::Group& group) {
  return static_cast<int>(fnv1a(name) % group.world_size());
}

void put(comm::Packer& packer, const Summary& summary) {
  packer.put(summary.look_up, kLastLookUp);
  packer.put(summary.type.dtype, kLastDataType);
  packer.put(std::string_view(summary.type.members));
  packer.put(summary.type.shape);
  packer.put(summary.regions);
  packer.put(summary.digest);
  packer.put(summary.lowest_rank);
  packer.put(summary.unlike);
}

Summary get_summary(comm::Unpacker& unpacker) {
  Summary summary;
  summary.look_up = unpacker.get_enum(kLastLookUp);
  summary.type.dtype = unpacker.get_enum(kLastDataType, DataType::int8);
  summary.type.members = unpacker.get_text();
  summary.type.shape = unpacker.get_shape();
  summary.regions = unpacker.get<std::uint32_t>();
  summary.digest = unpacker.get<std::uint64_t>();
  summary.lowest_rank = unpacker.get<std::uint32_t>();
  summary.unlike = unpacker.get<std::uint32_t>();
  return summary;
}

void put(comm::Packer& packer, const NameToFind& asked) {
  packer.put(std::string_view(asked.name));
  packer.put(asked.of.has_value());
  packer.put(asked.of.value_or(0));
}

NameToFind get_name(comm::Unpacker& unpacker) {
  NameToFind asked{unpacker.get_text()};
  const bool has_of = unpacker.get_bool();
  const auto of = unpacker.get<std::uint32_t>();
  if (has_of) asked.of = of;
  return asked;
}

Messages sealed(std::map<int, comm::Packer>& packed) {
  Messages messages;
  for (auto& [peer, packer] : packed) {
    std::vector<std::byte> bytes = packer.take();
    append_checksum(bytes);
    messages.push_back({peer, std::move(bytes)});
  }
  return messages;
}

class NameSearch {
 public:
  NameSearch(const comm::Group& group, std::span<const NameToFind> names, std::span<const SavedRegion> mine)
      : group_(group), names_(names), mine_(mine) {}

  std::vector<SavedName> run() {
    tell_homes();
    const Messages answers = group_.exchange(answer(group_.exchange(questions())));
    std::vector<SavedName> found;
    group_.run_on_all_ranks([&] { found = take(answers); });
    return found;
  }

 private:
  void tell_homes() {
    NameBits wanted{};     // of all ranks together
    NameBits wanted_of{};  // of single ranks
    for (const NameToFind& asked : names_) add_name(asked.of ? wanted_of : wanted, asked.name);
    wanted = group_.bit_or(wanted);
    wanted_of = group_.bit_or(wanted_of);
    Summaries local;
    for (const SavedRegion& region : mine_) {
      const std::string& name = region.spec.name;
      if (may_have(wanted, name)) local[{name}].add(summary_of(region));
      if (may_have(wanted_of, name)) local[{name, region.logical_rank.value}].add(summary_of(region));
    }
    std::map<int, comm::Packer> packed;
    for (const auto& [asked, summary] : local) {
      comm::Packer& packer = packed[home_of(asked.name, group_)];
      put(packer, asked);
      put(packer, summary);
    }
    const Messages arrived = group_.exchange(sealed(packed));
    group_.run_on_all_ranks([&] {
      for (const auto& message : arrived) {
        comm::Unpacker unpacker(checked_bytes(message));
        while (!unpacker.empty()) {
          const NameToFind asked = get_name(unpacker);
          homed_[asked].add(get_summary(unpacker));
        }
      }
    });
  }

  [[nodiscard]] Messages questions() const {
    std::map<int, comm::Packer> packed;
    for (const NameToFind& asked : names_) put(packed[home_of(asked.name, group_)], asked);
    return sealed(packed);
  }

  /// In the order of the questions of each process. A damaged question gets no answer, which its sender notices.
  [[nodiscard]] Messages answer(const Messages& asked) const {
    std::map<int, comm::Packer> packed;
    for (const auto& message : asked) {
      (void)attempt([&] {
        comm::Unpacker unpacker(checked_bytes(message));
        while (!unpacker.empty()) {
          const auto found = homed_.find(get_name(unpacker));
          put(packed[message.peer], found == homed_.end() ? Summary{} : found->second);
        }
      });
    }
    return sealed(packed);
  }

  [[nodiscard]] std::vector<SavedName> take(const Messages& answers) const {
    std::map<int, comm::Unpacker> by_home;
    for (const auto& message : answers) by_home.emplace(message.peer, comm::Unpacker(checked_bytes(message)));
    std::vector<SavedName> found;
    for (const NameToFind& asked : names_) {
      const int rank = home_of(asked.name, group_);
      const auto home = by_home.find(rank);
      if (home == by_home.end()) refuse_message(rank);
      Summary summary = get_summary(home->second);
      std::optional<std::pair<LogicalRank, LogicalRank>> unlike;
      if (summary.unlike != kNoRank) unlike = {LogicalRank{summary.lowest_rank}, LogicalRank{summary.unlike}};
      found.push_back({summary.look_up, std::move(summary.type), summary.regions, unlike});
    }
    return found;
  }

  const comm::Group& group_;
  std::span<const NameToFind> names_;
  std::span<const SavedRegion> mine_;
  Summaries homed_;
};

}  // namespace

std::vector<SavedName> find_saved_names(const comm::Group& group, std::span<const NameToFind> names,
                                        std::span<const SavedRegion> mine) {
  return NameSearch(group, names, mine).run();
}

}  // namespace kedge::arrays

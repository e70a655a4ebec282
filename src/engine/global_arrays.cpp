#include "engine/global_arrays.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <set>
#include <string_view>
#include <utility>

#include "base/text.hpp"
#include "engine/calls.hpp"

namespace kedge::engine {
namespace {

// Records between processes of one job, never stored.
enum class Kind : std::uint8_t { shard, replicated, group };

class Packer {
 public:
  template <class Value>
  void put(const Value& value) {
    static_assert(std::is_trivially_copyable_v<Value>);
    const auto bytes = std::as_bytes(std::span(&value, 1));
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  void put(std::string_view text) {
    put(static_cast<std::uint32_t>(text.size()));
    const auto bytes = std::as_bytes(std::span(text));
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  void put(const Shape& shape) {
    put(static_cast<std::uint8_t>(shape.dimensions()));
    for (const std::uint64_t extent : shape.extents()) put(extent);
  }
  void put(Kind kind, std::uint32_t rank, const SharedRegion& region) {
    put(kind);
    put(rank);
    put(std::string_view(region.name));
    if (kind == Kind::group) return;
    put(region.dtype);
    put(region.shape);
    if (kind == Kind::replicated) return;
    put(region.shard->global_shape);
    put(region.shard->offset);
    put(static_cast<std::uint8_t>(region.shard->holes_allowed));
  }
  [[nodiscard]] std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

class Unpacker {
 public:
  explicit Unpacker(std::span<const std::byte> bytes) : bytes_(bytes) {}

  [[nodiscard]] bool empty() const noexcept { return bytes_.empty(); }
  template <class Value>
  Value get() {
    Value value{};
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  std::string text() {
    const auto size = get<std::uint32_t>();
    const auto bytes = take(size);
    std::string text(size, '\0');
    if (size != 0) std::memcpy(text.data(), bytes.data(), size);
    return text;
  }
  Shape shape() {
    std::array<std::uint64_t, Shape::kMaxDimensions> extents{};
    const std::size_t dimensions = std::min<std::size_t>(get<std::uint8_t>(), extents.size());
    for (std::size_t i = 0; i < dimensions; ++i) extents[i] = get<std::uint64_t>();
    return Shape(std::span<const std::uint64_t>(extents).first(dimensions));
  }
  struct Record {
    Kind kind = Kind::group;
    std::uint32_t rank = 0;
    SharedRegion region;
  };
  Record record() {
    Record record;
    record.kind = get<Kind>();
    record.rank = get<std::uint32_t>();
    record.region.name = text();
    if (record.kind == Kind::group) return record;
    record.region.dtype = get<DataType>();
    record.region.shape = shape();
    if (record.kind == Kind::replicated) return record;
    Shard shard;
    shard.global_shape = shape();
    shard.offset = shape();
    shard.holes_allowed = get<std::uint8_t>() != 0;
    record.region.shard = shard;
    return record;
  }

 private:
  std::span<const std::byte> take(std::size_t count) {
    if (count > bytes_.size()) throw Error(ErrorCode::io, "a message about global arrays was cut short on its way");
    const auto front = bytes_.first(count);
    bytes_ = bytes_.subspan(count);
    return front;
  }

  std::span<const std::byte> bytes_;
};

Failure mismatch(std::string message) { return Failure{ErrorCode::mismatch, std::move(message), -1, {}, 0}; }

Kind kind_of(const SharedRegion& region) { return region.shard ? Kind::shard : Kind::replicated; }

/// Every group that the name lies in: "a" and "a/b" for "a/b/c".
template <class Visit>
void for_each_group(std::string_view name, Visit&& visit) {
  for (auto slash = name.find('/'); slash != std::string_view::npos; slash = name.find('/', slash + 1)) {
    visit(std::string(name.substr(0, slash)));
  }
}

std::string describe(const SharedRegion& region) {
  if (!region.shard) return compose("replicated {} of shape {}", to_string(region.dtype), to_string(region.shape));
  return compose("a shard of {} of shape {}{}", to_string(region.dtype), to_string(region.shard->global_shape),
                 region.shard->holes_allowed ? " with holes allowed" : "");
}

bool agree(const SharedRegion& a, const SharedRegion& b) {
  if (kind_of(a) != kind_of(b) || a.dtype != b.dtype) return false;
  if (!a.shard) return a.shape == b.shape;
  return a.shard->global_shape == b.shard->global_shape && a.shard->holes_allowed == b.shard->holes_allowed;
}

}  // namespace

std::vector<SharedRegion> shared_regions(std::span<const format::PlacedRegion> regions) {
  std::vector<SharedRegion> shared;
  for (const format::PlacedRegion& region : regions) {
    const format::RegionSpec& spec = region.spec;
    const auto* shard = std::get_if<Shard>(&spec.placement);
    if (shard == nullptr && !std::holds_alternative<Replicated>(spec.placement)) continue;
    shared.push_back({spec.name, spec.dtype, spec.shape, shard == nullptr ? std::nullopt : std::optional(*shard)});
  }
  return shared;
}

GlobalArrays GlobalArrays::tell(Communicator& communicator, std::span<const SharedRegion> mine, Deadline deadline) {
  const auto processes = static_cast<std::uint64_t>(communicator.size());
  const auto me = static_cast<std::uint32_t>(communicator.rank());
  std::map<int, Packer> packed;
  const auto home = [&](std::string_view name) { return static_cast<int>(hash_of(name) % processes); };
  std::set<std::string> groups;
  for (const SharedRegion& region : mine) {
    packed[home(region.name)].put(kind_of(region), me, region);
    for_each_group(region.name, [&](std::string group) { groups.insert(std::move(group)); });
  }
  for (const std::string& group : groups) packed[home(group)].put(Kind::group, me, {group, {}, {}, {}});
  std::vector<Communicator::Message> messages;
  for (auto& [peer, packer] : packed) messages.push_back({peer, packer.take()});

  GlobalArrays arrays;
  for (const auto& message : communicator.sparse_exchange(std::move(messages), deadline)) {
    for (Unpacker unpacker(message.bytes); !unpacker.empty();) {
      auto [kind, rank, region] = unpacker.record();
      Homed& homed = arrays.homed_[region.name];
      if (kind == Kind::group) homed.group_of = rank;
      else homed.regions.push_back({rank, std::move(region)});
    }
  }
  return arrays;
}

std::optional<Failure> GlobalArrays::check() const {
  for (const auto& [name, homed] : homed_) {
    if (auto failure = check(name, homed)) return failure;
  }
  return std::nullopt;
}

std::optional<Failure> GlobalArrays::check(const std::string& name, const Homed& homed) {
  if (homed.regions.empty()) return std::nullopt;
  const Told& first = homed.regions.front();
  if (homed.group_of) {
    return mismatch(
        compose("region '{0}' of rank {1} is also a group: rank {2} saves a region whose name starts with "
                "'{0}/'; rename one of them",
                name, first.rank, *homed.group_of));
  }
  std::vector<format::Block> blocks;
  for (const Told& told : homed.regions) {
    if (!agree(first.region, told.region)) {
      return mismatch(compose("ranks {} and {} disagree about region '{}': it is {} and {}; save it alike on all ranks",
                              first.rank, told.rank, name, describe(first.region), describe(told.region)));
    }
    if (told.region.shard) blocks.push_back({told.rank, told.region.shard->offset, told.region.shape});
  }
  if (!first.region.shard) return std::nullopt;
  return format::check_cover(name, first.region.shard->global_shape, std::move(blocks),
                             first.region.shard->holes_allowed);
}

std::optional<format::View> GlobalArrays::gather(Communicator& communicator, std::uint64_t view_limit,
                                                 Deadline deadline) const {
  std::uint64_t shards = 0;
  for (const auto& [name, homed] : homed_) shards += homed.regions.size();
  communicator.all_reduce(std::span(&shards, 1), Reduction::sum, deadline);
  if (shards > view_limit) return std::nullopt;
  Packer packer;
  for (const auto& [name, homed] : homed_) {
    for (const Told& told : homed.regions) {
      packer.put(kind_of(told.region), told.rank, told.region);
      if (!told.region.shard) break;  // one rank's stands for all
    }
  }
  std::vector<Communicator::Message> messages;
  if (auto bytes = packer.take(); !bytes.empty()) messages.push_back({0, std::move(bytes)});
  std::map<std::string, format::View::Array> arrays;
  std::map<std::string, std::uint32_t> replicas;
  for (const auto& message : communicator.sparse_exchange(std::move(messages), deadline)) {
    for (Unpacker unpacker(message.bytes); !unpacker.empty();) {
      const auto [kind, rank, region] = unpacker.record();
      if (kind == Kind::replicated) {
        replicas.emplace(region.name, rank);
        continue;
      }
      format::View::Array& array = arrays[region.name];
      array.name = region.name;
      array.dtype = region.dtype;
      array.global_shape = region.shard->global_shape;
      array.blocks.push_back({rank, region.shard->offset, region.shape});
    }
  }
  format::View view;  // by name: the same structure gives the same file, whichever process was home to what
  for (auto& [name, array] : arrays) view.arrays.push_back(std::move(array));
  for (const auto& [name, rank] : replicas) view.replicas.push_back({name, rank});
  return view;
}

}  // namespace kedge::engine

#include "format/index.hpp"

#include <array>
#include <cstring>
#include <string>

#include "base/json.hpp"
#include "base/text.hpp"
#include "format/region_spec.hpp"
#include "kedge/error.hpp"

namespace kedge::format {
namespace {

/// Each call reads the next value and throws Error{corrupt} with `path` if it is of another kind. Results point into
/// the bytes.
class CborReader {
 public:
  CborReader(std::span<const std::byte> bytes, std::string_view path) : rest_(bytes), path_(path) {}

  [[nodiscard]] std::uint64_t read_number();
  [[nodiscard]] std::string_view read_text();
  [[nodiscard]] std::span<const std::byte> read_bytes();
  /// The number of elements that follow; at most the number of bytes left.
  [[nodiscard]] std::uint64_t read_array();
  /// Requires an array of exactly `count` elements.
  void require_array(std::uint64_t count);
  [[nodiscard]] bool read_boolean();
  /// Skips a null; false if the next value is not one.
  [[nodiscard]] bool take_null();
  [[nodiscard]] bool is_array_next() const noexcept;
  /// Requires that nothing is left.
  void require_end() const;

 private:
  [[nodiscard]] std::uint64_t read_head(unsigned major);
  [[nodiscard]] std::span<const std::byte> take_bytes(std::uint64_t count);
  [[noreturn]] void throw_invalid() const;

  std::span<const std::byte> rest_;
  std::string_view path_;
};

// Major types, in the upper three bits of a value's first byte.
constexpr unsigned kUnsigned = 0;
constexpr unsigned kBytes = 2;
constexpr unsigned kText = 3;
constexpr unsigned kArray = 4;

constexpr std::byte kFalse{0xf4};
constexpr std::byte kTrue{0xf5};
constexpr std::byte kNull{0xf6};

std::uint64_t CborReader::read_number() { return read_head(kUnsigned); }

std::string_view CborReader::read_text() {
  const auto letters = take_bytes(read_head(kText));
  return {reinterpret_cast<const char*>(letters.data()), letters.size()};  // NOLINT(*-reinterpret-cast)
}

std::span<const std::byte> CborReader::read_bytes() { return take_bytes(read_head(kBytes)); }

std::uint64_t CborReader::read_array() {
  const std::uint64_t count = read_head(kArray);
  if (count > rest_.size()) throw_invalid();
  return count;
}

void CborReader::require_array(std::uint64_t count) {
  if (read_array() != count) throw_invalid();
}

bool CborReader::read_boolean() {
  const std::byte value = take_bytes(1)[0];
  if (value != kTrue && value != kFalse) throw_invalid();
  return value == kTrue;
}

bool CborReader::take_null() {
  if (rest_.empty() || rest_[0] != kNull) return false;
  rest_ = rest_.subspan(1);
  return true;
}

bool CborReader::is_array_next() const noexcept {
  return !rest_.empty() && std::to_integer<unsigned>(rest_[0]) >> 5U == kArray;
}

void CborReader::require_end() const {
  if (!rest_.empty()) throw_invalid();
}

// The first byte's lower five bits are the argument (below 24) or give its length in bytes.
std::uint64_t CborReader::read_head(unsigned major) {
  const auto first = std::to_integer<unsigned>(take_bytes(1)[0]);
  const unsigned small = first & 31U;
  if (first >> 5U != major || small > 27) throw_invalid();
  if (small < 24) return small;
  std::uint64_t argument = 0;
  for (const std::byte byte : take_bytes(std::uint64_t{1} << (small - 24))) {
    argument = argument << 8U | std::to_integer<std::uint64_t>(byte);
  }
  return argument;
}

std::span<const std::byte> CborReader::take_bytes(std::uint64_t count) {
  if (count > rest_.size()) throw_invalid();
  const auto taken = rest_.first(count);
  rest_ = rest_.subspan(count);
  return taken;
}

void CborReader::throw_invalid() const {
  throw Error(Failure{ErrorCode::corrupt, "the index cannot be used: it is not a CBOR-encoded index", -1,
                      std::string(path_), 0});
}

[[noreturn]] void throw_corrupt_index(std::string_view path, const std::string& message) {
  throw Error(Failure{ErrorCode::corrupt, "the index cannot be used: " + message, -1, std::string(path), 0});
}

// --- writing ---

constexpr std::uint8_t kArrayHead = 0x9a;   // CBOR: array, 32-bit count (RFC 8949, 3)
constexpr std::uint8_t kBytesHead = 0x5a;   // CBOR: byte string, 32-bit length
constexpr std::uint64_t kRegionFields = 7;  // structs have another one
constexpr std::uint64_t kExtentFields = 3;
constexpr std::uint64_t kExtentEntryBytesMax = 1 + 3 * 9;
constexpr std::uint64_t kHeadsBytes = 2 + 3 * 5;  // outer array and version, then the three arrays' heads

void put_head(std::vector<std::uint8_t>& out, std::uint8_t head, std::uint64_t count) {
  out.push_back(head);
  for (int shift = 24; shift >= 0; shift -= 8) out.push_back(static_cast<std::uint8_t>(count >> shift));
}

Json to_json(const Shape& shape) {
  return Json(std::vector<std::uint64_t>(shape.extents().begin(), shape.extents().end()));
}

Json to_json(const Placement& placement) {
  if (const auto* shard = std::get_if<Shard>(&placement)) {
    Json place = Json::array({to_json(shard->global_shape), to_json(shard->offset)});
    if (shard->holes_allowed) place.push_back(true);
    return place;
  }
  if (std::holds_alternative<Replicated>(placement)) return Json(true);
  return Json(nullptr);
}

void put_region(std::vector<std::uint8_t>& out, const StoredRegion& region) {
  const RegionSpec& spec = region.spec;
  Json fields = Json::array({spec.name, static_cast<unsigned>(spec.dtype), to_json(spec.shape), to_json(spec.placement),
                             spec.is_routed, region.offset, region.size_bytes});
  if (!spec.members.empty()) fields.push_back(spec.members);
  Json::to_cbor(fields, out);
}

// --- reading ---

Shape read_shape(CborReader& reader, std::string_view path) {
  const std::uint64_t dimensions = reader.read_array();
  if (dimensions > Shape::kMaxDimensions) throw_corrupt_index(path, "a shape has too many dimensions");
  std::array<std::uint64_t, Shape::kMaxDimensions> extents{};
  for (std::uint64_t i = 0; i < dimensions; ++i) extents[i] = reader.read_number();
  return Shape(std::span(extents).first(dimensions));
}

Placement read_placement(CborReader& reader, std::string_view path) {
  if (reader.take_null()) return {};
  if (!reader.is_array_next()) {
    if (!reader.read_boolean()) throw_corrupt_index(path, "a placement is malformed");
    return Replicated{};
  }
  const std::uint64_t fields = reader.read_array();
  if (fields != 2 && fields != 3) throw_corrupt_index(path, "a shard's placement is malformed");
  Shard shard;
  shard.global_shape = read_shape(reader, path);
  shard.offset = read_shape(reader, path);
  if (fields == 3 && !(shard.holes_allowed = reader.read_boolean()))
    throw_corrupt_index(path, "a shard's placement is malformed");
  return shard;
}

StoredRegion read_region(CborReader& reader, std::uint64_t file_size, std::string_view path) {
  const std::uint64_t fields = reader.read_array();
  if (fields != kRegionFields && fields != kRegionFields + 1) throw_corrupt_index(path, "a region is malformed");
  StoredRegion region;
  region.spec.name = reader.read_text();
  const std::uint64_t dtype = reader.read_number();
  region.spec.dtype = dtype <= 255 ? static_cast<DataType>(dtype) : DataType{};
  if (kedge::size_bytes(region.spec.dtype) == 0) {  // a type of a later Kedge
    throw_corrupt_index(
        path,
        kedge::compose("region '{}' has data type {}, which this Kedge does not know; use the Kedge that wrote it",
                       printable_name(region.spec.name), dtype));
  }
  region.spec.shape = read_shape(reader, path);
  region.spec.placement = read_placement(reader, path);
  region.spec.is_routed = reader.read_boolean();
  region.offset = reader.read_number();
  region.size_bytes = reader.read_number();
  if (fields > kRegionFields && (region.spec.members = reader.read_text()).empty())
    throw_corrupt_index(path, "a region is malformed");
  if (const auto problem = check_region_spec(region.spec)) throw_corrupt_index(path, problem->message);
  const bool empty = region.size_bytes == 0;
  const bool inside =
      region.offset >= kSuperblockBytes && region.offset <= file_size && region.size_bytes <= file_size - region.offset;
  if (region.size_bytes != region_size_bytes(region.spec) || (empty ? region.offset != 0 : !inside)) {
    throw_corrupt_index(path, kedge::compose("size or offset of region '{}' is impossible", region.spec.name));
  }
  return region;
}

// Extents follow from the regions' offsets; they are stored for readers that do not derive them.
void check_extents(CborReader& reader, const RegionMap& map, std::string_view path) {
  bool same = reader.read_array() == map.data_extents.size();
  for (std::size_t i = 0; same && i < map.data_extents.size(); ++i) {
    const DataExtent& derived = map.data_extents[i];
    reader.require_array(kExtentFields);
    same = reader.read_number() == derived.offset && reader.read_number() == derived.length &&
           reader.read_number() == derived.region_count;
  }
  if (!same) throw_corrupt_index(path, "its extents do not match its regions");
}

}  // namespace

std::vector<std::byte> encode_index_head(const RegionMap& map) {
  std::vector<std::uint8_t> out{0x84, kIndexVersion};
  put_head(out, kArrayHead, map.regions.size());
  for (const StoredRegion& region : map.regions) put_region(out, region);
  put_head(out, kArrayHead, map.data_extents.size());
  for (const DataExtent& extent : map.data_extents) {
    Json::to_cbor(Json::array({extent.offset, extent.length, extent.region_count}), out);
  }
  put_head(out, kBytesHead, 4 * map.checksum_count);
  std::vector<std::byte> bytes(out.size());
  std::memcpy(bytes.data(), out.data(), out.size());
  return bytes;
}

std::uint64_t index_size_bound(std::span<const StoredRegion> regions, std::uint64_t extents, std::uint64_t checksums) {
  std::uint64_t size = kHeadsBytes + extents * kExtentEntryBytesMax + checksums * 4;
  std::vector<std::uint8_t> out;
  for (const StoredRegion& region : regions) {
    out.clear();
    put_region(out, region);
    size += out.size();
  }
  return size;
}

Index decode_index(std::span<const std::byte> bytes, std::span<const Extent> others, std::uint64_t file_size,
                   std::string_view path) {
  CborReader reader(bytes, path);
  reader.require_array(4);
  const std::uint64_t version = reader.read_number();
  if (version != kIndexVersion) {
    throw_corrupt_index(
        path, kedge::compose("index version {} is not the one this Kedge reads ({}); use the Kedge that wrote it",
                             version, kIndexVersion));
  }
  std::vector<StoredRegion> regions;
  for (std::uint64_t left = reader.read_array(); left != 0; --left)
    regions.push_back(read_region(reader, file_size, path));
  Index index;
  index.map = make_region_map(std::move(regions), others, file_size, path);
  check_extents(reader, index.map, path);
  const auto stored = reader.read_bytes();
  reader.require_end();
  if (stored.size() % 4 != 0 || stored.size() / 4 != index.map.checksum_count) {
    throw_corrupt_index(path, "its number of checksums does not match its regions");
  }
  index.checksums.resize(stored.size() / 4);
  if (!stored.empty()) std::memcpy(index.checksums.data(), stored.data(), stored.size());
  return index;
}

}  // namespace kedge::format

#include "format/set_descriptor.hpp"

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/text.hpp"
#include "checksum/crc32c.hpp"
#include "commits/head_check.hpp"
#include "format/fields.hpp"
#include "format/superblock.hpp"
#include "kedge/error.hpp"

namespace kedge::format {
namespace {

// ISA-L's gf_gen_cauchy1_matrix: data i and parity j of a stripe have 1/((data in the stripe + j) XOR i).
constexpr std::uint32_t kCauchyCoefficients = 1;
constexpr std::uint32_t kParitiesMin = 2;  // with one, the scheme is xor
constexpr std::uint32_t kParitiesMax = 4;

static_assert(sizeof(Id128) == 16 && sizeof(SetFileKind) == 4);
static_assert(kSetMemberBytes == sizeof(LogicalRank) + sizeof(SetMember::crc) + sizeof(SetMember::size_bytes));

void check_set_header(std::span<const std::byte> bytes, std::string_view path) {
  if (bytes.size() < kSuperblockBytes)
    throw_corrupt(path, "neither parity nor set descriptor: shorter than 4096 bytes");
  if (is_unsealed(bytes.first(kSuperblockBytes))) {
    throw_corrupt(path, "not sealed: this parity file or set descriptor was retired or never finished");
  }
  if (std::memcmp(bytes.data(), kSetMagic.data(), kSetMagic.size()) != 0) {
    throw_corrupt(path, "neither parity nor set descriptor: bad magic number");
  }
  if (crc32c(bytes.first(set_at::kCrc)) != get_field<std::uint32_t>(bytes, set_at::kCrc)) {
    throw_corrupt(path, "the checksum of the set's description is wrong; the file is damaged");
  }
  const auto version = get_field<std::uint32_t>(bytes, set_at::kVersion);
  if (const auto problem = check_version("the set's format version", version, kSetVersion))
    throw_corrupt(path, *problem);
  if (get_field<std::uint32_t>(bytes, set_at::kSealed) != 1) {
    throw_corrupt(path, "not sealed: the sealed flag of the set's description is invalid");
  }
}

// Returns the error in the members, if there is one.
std::optional<std::string> check_members_of_set(const SetDescriptor& descriptor) {
  std::vector<std::uint32_t> ranks;
  for (const SetMember& member : descriptor.members) {
    if (member.logical_rank.value >= descriptor.world_size) {
      return kedge::compose("member rank {} is not below the world size {}", member.logical_rank.value,
                            descriptor.world_size);
    }
    if (member.size_bytes > kFileBytesMax) {
      return kedge::compose("the size of rank {}'s container, {} bytes, is impossible", member.logical_rank.value,
                            member.size_bytes);
    }
    ranks.push_back(member.logical_rank.value);
  }
  std::sort(ranks.begin(), ranks.end());
  const auto twice = std::adjacent_find(ranks.begin(), ranks.end());
  if (twice == ranks.end()) return std::nullopt;
  return kedge::compose("rank {} is listed twice as a member", *twice);
}

// Returns which fields contradict each other, if any do.
std::optional<std::string> check_consistency(const SetDescriptor& descriptor) {
  if (descriptor.kind != SetFileKind::descriptor && descriptor.kind != SetFileKind::parity) {
    return kedge::compose("unknown kind {}", static_cast<std::uint32_t>(descriptor.kind));
  }
  if (descriptor.generation == 0 || descriptor.generation > commits::kGenerationMax) {
    return kedge::compose("the generation {} is impossible", descriptor.generation);
  }
  if (descriptor.members.size() <= descriptor.parity_count) {
    return kedge::compose("a set of {} members cannot have parity {}", descriptor.members.size(),
                          descriptor.parity_count);
  }
  if (descriptor.position >= descriptor.members.size()) {
    return kedge::compose("position {} is not below the {} members", descriptor.position, descriptor.members.size());
  }
  if (descriptor.parity_bytes > kFileBytesMax) {
    return kedge::compose("the parity size {} is impossible", descriptor.parity_bytes);
  }
  if (descriptor.kind == SetFileKind::descriptor && (descriptor.parity_bytes != 0 || descriptor.parity_crc != 0)) {
    return "it has no parity, but a parity size or checksum";
  }
  return check_members_of_set(descriptor);
}

[[noreturn]] void throw_corrupt_set(std::string_view path, std::string_view what) {
  throw_corrupt(path, kedge::compose("the set's description is inconsistent: {}; the file is damaged", what));
}

Scheme scheme_of(std::span<const std::byte> bytes, std::string_view path) {
  const auto number = get_field<std::uint32_t>(bytes, set_at::kScheme);
  for (const Scheme scheme : {Scheme::partner, Scheme::xor_, Scheme::rs}) {
    if (number == static_cast<std::uint32_t>(scheme)) return scheme;
  }
  throw_corrupt_set(path, kedge::compose("scheme {} is not partner, xor or rs", number));
}

// The number of parities, which only rs stores.
std::uint32_t parities_of(std::span<const std::byte> bytes, Scheme scheme, std::string_view path) {
  const auto parities = get_field<std::uint32_t>(bytes, set_at::kParities);
  const auto coefficients = get_field<std::uint32_t>(bytes, set_at::kCoefficients);
  if (scheme != Scheme::rs) {
    if (parities != 0 || coefficients != 0) throw_corrupt_set(path, "unused bytes are not zero");
    return 1;
  }
  if (parities < kParitiesMin || parities > kParitiesMax) {
    throw_corrupt_set(path,
                      kedge::compose("parity {} is not in the range {} to {}", parities, kParitiesMin, kParitiesMax));
  }
  if (coefficients != kCauchyCoefficients) {
    throw_corrupt_set(path, kedge::compose("unknown coefficients {}", coefficients));
  }
  return parities;
}

// Unused bytes must be zero, which lets a later version use them.
void check_unused_set_bytes(std::span<const std::byte> bytes, std::size_t members, std::string_view path) {
  const std::size_t end = set_at::kTable + members * kSetMemberBytes;
  if (!is_unsealed(bytes.subspan(set_at::kFieldsEnd, set_at::kTable - set_at::kFieldsEnd)) ||
      !is_unsealed(bytes.subspan(end, set_at::kCrc - end))) {
    throw_corrupt_set(path, "unused bytes are not zero");
  }
}

}  // namespace

SetDescriptorBytes encode_set_descriptor(const SetDescriptor& descriptor) {
  if (descriptor.members.size() > kSetMembersMax) {
    throw Error(ErrorCode::invalid_argument,
                kedge::compose("a redundancy set of {} members is too large for a set descriptor ({}); lower "
                               "redundancy.set_size, or spread the ranks over more failure domains",
                               descriptor.members.size(), kSetMembersMax));
  }
  SetDescriptorBytes bytes{};
  put_field(bytes, set_at::kMagic, kSetMagic);
  put_field(bytes, set_at::kVersion, kSetVersion);
  put_field(bytes, set_at::kSealed, std::uint32_t{1});
  put_field(bytes, set_at::kRunId, descriptor.run_id.bytes);
  put_field(bytes, set_at::kCommitId, descriptor.commit_id.bytes);
  put_field(bytes, set_at::kProtectionId, descriptor.protection_id.bytes);
  put_field(bytes, set_at::kGeneration, descriptor.generation);
  put_field(bytes, set_at::kSetNumber, descriptor.set_number);
  put_field(bytes, set_at::kKind, descriptor.kind);
  put_field(bytes, set_at::kScheme, static_cast<std::uint32_t>(descriptor.scheme));
  put_field(bytes, set_at::kWorldSize, descriptor.world_size);
  put_field(bytes, set_at::kPosition, descriptor.position);
  put_field(bytes, set_at::kParityBytes, descriptor.parity_bytes);
  put_field(bytes, set_at::kParityCrc, descriptor.parity_crc);
  put_field(bytes, set_at::kMembers, static_cast<std::uint32_t>(descriptor.members.size()));
  if (descriptor.scheme == Scheme::rs) {
    put_field(bytes, set_at::kParities, descriptor.parity_count);
    put_field(bytes, set_at::kCoefficients, kCauchyCoefficients);
  }
  std::size_t place = set_at::kTable;
  for (const SetMember& member : descriptor.members) {
    put_field(bytes, place, member.logical_rank.value);
    put_field(bytes, place + 4, member.crc);
    put_field(bytes, place + 8, member.size_bytes);
    place += kSetMemberBytes;
  }
  put_field(bytes, set_at::kCrc, crc32c(std::span(bytes).first(set_at::kCrc)));
  return bytes;
}

SetDescriptor decode_set_descriptor(std::span<const std::byte> bytes, std::string_view path) {
  check_set_header(bytes, path);
  bytes = bytes.first(kSuperblockBytes);
  SetDescriptor descriptor;
  descriptor.kind = get_field<SetFileKind>(bytes, set_at::kKind);
  descriptor.run_id.bytes = get_field<std::array<std::uint8_t, 16>>(bytes, set_at::kRunId);
  descriptor.commit_id.bytes = get_field<std::array<std::uint8_t, 16>>(bytes, set_at::kCommitId);
  descriptor.protection_id.bytes = get_field<std::array<std::uint8_t, 16>>(bytes, set_at::kProtectionId);
  descriptor.generation = get_field<std::uint64_t>(bytes, set_at::kGeneration);
  descriptor.world_size = get_field<std::uint32_t>(bytes, set_at::kWorldSize);
  descriptor.scheme = scheme_of(bytes, path);
  descriptor.parity_count = parities_of(bytes, descriptor.scheme, path);
  descriptor.set_number = get_field<std::uint64_t>(bytes, set_at::kSetNumber);
  descriptor.position = get_field<std::uint32_t>(bytes, set_at::kPosition);
  descriptor.parity_bytes = get_field<std::uint64_t>(bytes, set_at::kParityBytes);
  descriptor.parity_crc = get_field<std::uint32_t>(bytes, set_at::kParityCrc);

  const auto members = get_field<std::uint32_t>(bytes, set_at::kMembers);
  if (members < 2 || members > kSetMembersMax) {
    throw_corrupt_set(
        path, kedge::compose("the number of members, {}, is not in the range 2 to {}", members, kSetMembersMax));
  }
  for (std::size_t i = 0; i < members; ++i) {
    const std::size_t place = set_at::kTable + i * kSetMemberBytes;
    descriptor.members.push_back({LogicalRank{get_field<std::uint32_t>(bytes, place)},
                                  get_field<std::uint32_t>(bytes, place + 4),
                                  get_field<std::uint64_t>(bytes, place + 8)});
  }
  if (const auto what = check_consistency(descriptor)) throw_corrupt_set(path, *what);
  check_unused_set_bytes(bytes, members, path);
  return descriptor;
}

}  // namespace kedge::format

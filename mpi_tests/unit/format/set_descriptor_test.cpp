// Set descriptors: round trip, every bit guarded, contradictions refused, and the bytes themselves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <numeric>

#include "checksum/crc32c.hpp"
#include "commits/head_check.hpp"
#include "format/fields.hpp"
#include "format/set_descriptor.hpp"
#include "kedge/error.hpp"

namespace kedge::format::testing::set_descriptor_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Id128 id(std::uint8_t first) {
  Id128 made;
  std::iota(made.bytes.begin(), made.bytes.end(), first);
  return made;
}

SetDescriptor parity_of_three() {
  SetDescriptor descriptor;
  descriptor.kind = SetFileKind::parity;
  descriptor.run_id = id(0x10);
  descriptor.commit_id = id(0x20);
  descriptor.protection_id = id(0x30);
  descriptor.generation = 0x0102030405060708U;
  descriptor.world_size = 0x01020304;
  descriptor.scheme = Scheme::xor_;
  descriptor.set_number = 0x1112131415161718U;
  descriptor.position = 2;
  descriptor.members = {{LogicalRank{0x00112233}, 0xa1a2a3a4, 0x10000},
                        {LogicalRank{7}, 0xb1b2b3b4, 0x20000},
                        {LogicalRank{0}, 0, 0x18000}};
  descriptor.parity_bytes = 0x10000;
  descriptor.parity_crc = 0xc1c2c3c4;
  return descriptor;
}

SetDescriptor descriptor_of_pair() {
  SetDescriptor descriptor = parity_of_three();
  descriptor.kind = SetFileKind::descriptor;
  descriptor.scheme = Scheme::partner;
  descriptor.members.pop_back();
  descriptor.position = 1;
  descriptor.parity_bytes = 0;
  descriptor.parity_crc = 0;
  return descriptor;
}

// Makes the checksum right again after a field was changed on purpose.
void reseal(SetDescriptorBytes& bytes) { put_field(bytes, set_at::kCrc, crc32c(std::span(bytes).first(set_at::kCrc))); }

// What decode_set_descriptor says against the bytes; empty if nothing.
std::string refusal(std::span<const std::byte> bytes) {
  try {
    static_cast<void>(decode_set_descriptor(bytes, "the/path"));
    return {};
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::corrupt);
    EXPECT_EQ(error.failure().path, "the/path");
    return error.failure().message;
  }
}

template <class T>
std::string refusal_with(std::size_t place, const T& value) {
  SetDescriptorBytes bytes = encode_set_descriptor(parity_of_three());
  put_field(bytes, place, value);
  reseal(bytes);
  return refusal(bytes);
}

std::string refusal_after(const std::function<void(SetDescriptor&)>& change) {
  SetDescriptor descriptor = parity_of_three();
  change(descriptor);
  return refusal(encode_set_descriptor(descriptor));
}

TEST(SetDescriptor, ComesBackAsItWas) {
  for (const SetDescriptor& descriptor : {parity_of_three(), descriptor_of_pair()}) {
    EXPECT_EQ(decode_set_descriptor(encode_set_descriptor(descriptor), "file"), descriptor);
  }
  SetDescriptor largest = parity_of_three();
  largest.members.clear();
  for (std::uint32_t i = 0; i < kSetMembersMax; ++i) largest.members.push_back({LogicalRank{1000 - i}, i, i});
  largest.position = kSetMembersMax - 1;
  EXPECT_EQ(decode_set_descriptor(encode_set_descriptor(largest), "file"), largest);
}

TEST(SetDescriptor, MayBeFollowedByTheParity) {
  const auto bytes = encode_set_descriptor(parity_of_three());
  std::vector<std::byte> file(bytes.begin(), bytes.end());
  file.resize(10000, std::byte{0xff});
  EXPECT_EQ(decode_set_descriptor(file, "file"), parity_of_three());
}

TEST(SetDescriptor, HoldsNoMoreMembersThanItHasPlaceFor) {
  SetDescriptor descriptor = parity_of_three();
  descriptor.members.resize(kSetMembersMax + 1);
  try {
    static_cast<void>(encode_set_descriptor(descriptor));
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_THAT(error.failure().message, AllOf(HasSubstr("129"), HasSubstr("redundancy.set_size")));
  }
}

TEST(SetDescriptor, EveryFlippedBitIsRefused) {
  for (const SetDescriptor& descriptor : {parity_of_three(), descriptor_of_pair()}) {
    SetDescriptorBytes bytes = encode_set_descriptor(descriptor);
    for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
      bytes[bit / 8] ^= std::byte{1} << (bit % 8);
      ASSERT_NE(refusal(bytes), "") << "bit " << bit;
      bytes[bit / 8] ^= std::byte{1} << (bit % 8);
    }
    EXPECT_EQ(refusal(bytes), "");
  }
}

TEST(SetDescriptor, WhatIsNoneOrUnfinishedIsRefused) {
  const SetDescriptorBytes bytes = encode_set_descriptor(parity_of_three());
  EXPECT_THAT(refusal(std::span(bytes).first(4095)), HasSubstr("shorter"));
  EXPECT_THAT(refusal({}), HasSubstr("shorter"));
  EXPECT_THAT(refusal(SetDescriptorBytes{}), HasSubstr("not sealed"));
  std::vector<std::byte> unsealed(8192);
  unsealed.back() = std::byte{1};
  EXPECT_THAT(refusal(unsealed), HasSubstr("not sealed")) << "whatever follows";
  EXPECT_THAT(refusal_with(set_at::kMagic, std::array{'K', 'E', 'D', 'G', 'E'}), HasSubstr("bad magic number"));
  EXPECT_THAT(refusal_with(set_at::kMagic + 5, '\n'), HasSubstr("bad magic number")) << "copied as text";
  EXPECT_THAT(refusal_with(set_at::kSealed, std::uint32_t{0}), HasSubstr("sealed flag"));
  EXPECT_THAT(refusal_with(set_at::kSealed, std::uint32_t{2}), HasSubstr("sealed flag"));
  EXPECT_THAT(refusal_with(set_at::kVersion, std::uint32_t{0}), HasSubstr("version"));
  EXPECT_THAT(refusal_with(set_at::kVersion, std::uint32_t{2}), AllOf(HasSubstr("version 2"), HasSubstr("newer")));
}

TEST(SetDescriptor, FieldsThatContradictEachOtherAreRefused) {
  EXPECT_THAT(refusal_with(set_at::kKind, std::uint32_t{0}), HasSubstr("kind 0"));
  EXPECT_THAT(refusal_with(set_at::kKind, std::uint32_t{3}), HasSubstr("kind 3"));
  for (const std::uint32_t scheme : {0U, 1U, 5U, 0x103U}) {  // 0x103 is no xor cut to a byte
    EXPECT_THAT(refusal_with(set_at::kScheme, scheme), HasSubstr("not partner, xor or rs")) << scheme;
  }
  EXPECT_THAT(refusal_with(set_at::kPosition, std::uint32_t{3}), HasSubstr("position 3"));
  for (const std::uint32_t members : {0U, 1U, 129U, 0xffffffffU}) {
    EXPECT_THAT(refusal_with(set_at::kMembers, members), HasSubstr("not in the range 2 to 128")) << members;
  }
  EXPECT_THAT(refusal_with(set_at::kWorldSize, std::uint32_t{0x00112233}), HasSubstr("not below the world size"));
  EXPECT_EQ(refusal_with(set_at::kWorldSize, std::uint32_t{0x00112234}), "");
  EXPECT_THAT(refusal_after([](auto& set) { set.members[2].logical_rank = set.members[0].logical_rank; }),
              HasSubstr("rank 1122867 is listed twice as a member"));
  EXPECT_THAT(refusal_after([](auto& set) { set.members[1].size_bytes = std::uint64_t{1} << 63U; }),
              HasSubstr("the size of rank 7's container"));
  EXPECT_THAT(refusal_after([](auto& set) { set.parity_bytes = std::numeric_limits<std::uint64_t>::max(); }),
              HasSubstr("parity size"));
  for (const std::uint64_t generation : {std::uint64_t{0}, commits::kGenerationMax + 1}) {
    EXPECT_THAT(refusal_after([&](auto& set) { set.generation = generation; }), HasSubstr("generation"));
  }
  EXPECT_EQ(refusal_after([](auto& set) { set.generation = commits::kGenerationMax; }), "");
}

TEST(SetDescriptor, OneOfReedSolomonNamesItsParitiesAndCoefficients) {
  SetDescriptor descriptor = parity_of_three();
  descriptor.scheme = Scheme::rs;
  descriptor.parity_count = 2;
  SetDescriptorBytes bytes = encode_set_descriptor(descriptor);
  EXPECT_EQ(decode_set_descriptor(bytes, "file"), descriptor);
  EXPECT_EQ(get_field<std::uint32_t>(bytes, 84), 4U);
  EXPECT_EQ(get_field<std::uint32_t>(bytes, 112), 2U);
  EXPECT_EQ(get_field<std::uint32_t>(bytes, 116), 1U) << "Cauchy";
  const auto refusal_of = [&](std::size_t place, std::uint32_t value) {
    SetDescriptorBytes changed = bytes;
    put_field(changed, place, value);
    reseal(changed);
    return refusal(changed);
  };
  for (const std::uint32_t parities : {0U, 1U, 5U, 0x102U}) {
    EXPECT_THAT(refusal_of(set_at::kParities, parities), HasSubstr("not in the range 2 to 4")) << parities;
  }
  EXPECT_THAT(refusal_of(set_at::kParities, 3), HasSubstr("a set of 3 members cannot have parity 3"));
  EXPECT_THAT(refusal_of(set_at::kCoefficients, 0), HasSubstr("unknown coefficients"));
  EXPECT_THAT(refusal_of(set_at::kCoefficients, 2), HasSubstr("unknown coefficients"));
  EXPECT_THAT(refusal_with(set_at::kParities, std::uint32_t{1}), HasSubstr("unused bytes")) << "of xor";
  EXPECT_THAT(refusal_with(set_at::kCoefficients, std::uint32_t{1}), HasSubstr("unused bytes")) << "of xor";
}

TEST(SetDescriptor, OneWithoutParityTellsOfNone) {
  SetDescriptor descriptor = descriptor_of_pair();
  descriptor.parity_bytes = 1;
  EXPECT_THAT(refusal(encode_set_descriptor(descriptor)), HasSubstr("has no parity"));
  descriptor.parity_bytes = 0;
  descriptor.parity_crc = 1;
  EXPECT_THAT(refusal(encode_set_descriptor(descriptor)), HasSubstr("has no parity"));
}

TEST(SetDescriptor, UnusedBytesAreZero) {
  const std::size_t table_end = set_at::kTable + 3 * kSetMemberBytes;
  for (const std::size_t place : {set_at::kFieldsEnd, set_at::kTable - 1, table_end, set_at::kCrc - 1}) {
    EXPECT_THAT(refusal_with(place, std::uint8_t{1}), HasSubstr("unused bytes are not zero")) << place;
  }
}

// Files of version 1 have these bytes for ever, whatever becomes of the code.
TEST(SetDescriptor, HasTheseBytes) {
  SetDescriptorBytes expected{};
  const auto at = [&](std::size_t place, std::initializer_list<unsigned> values) {
    for (const unsigned value : values) expected.at(place++) = static_cast<std::byte>(value);
  };
  at(0, {'K', 'P', 'S', 'E', 'T', 0x0d, 0x0a, 0x1a});
  at(8, {1, 0, 0, 0});                                                                                       // version
  at(12, {1, 0, 0, 0});                                                                                      // sealed
  at(16, {0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0x19, 0x1a, 0x1b, 0x1c, 0x1d, 0x1e, 0x1f});  // run
  at(32, {0x20, 0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28, 0x29, 0x2a, 0x2b, 0x2c, 0x2d, 0x2e, 0x2f});  // commit
  at(48,
     {0x30, 0x31, 0x32, 0x33, 0x34, 0x35, 0x36, 0x37, 0x38, 0x39, 0x3a, 0x3b, 0x3c, 0x3d, 0x3e, 0x3f});  // protection
  at(64, {8, 7, 6, 5, 4, 3, 2, 1});                                                                      // generation
  at(72, {0x18, 0x17, 0x16, 0x15, 0x14, 0x13, 0x12, 0x11});                                              // set number
  at(80, {2, 0, 0, 0});                                                                                  // kind: parity
  at(84, {3, 0, 0, 0});                                                                                  // scheme: xor
  at(88, {4, 3, 2, 1});                                                                                  // world size
  at(92, {2, 0, 0, 0});                                                                                  // position
  at(96, {0, 0, 1, 0, 0, 0, 0, 0});   // bytes of parity
  at(104, {0xc4, 0xc3, 0xc2, 0xc1});  // their CRC32C
  at(108, {3, 0, 0, 0});              // members: rank, CRC32C, size of each
  at(256, {0x33, 0x22, 0x11, 0, 0xa4, 0xa3, 0xa2, 0xa1, 0, 0, 1, 0, 0, 0, 0, 0});
  at(272, {7, 0, 0, 0, 0xb4, 0xb3, 0xb2, 0xb1, 0, 0, 2, 0, 0, 0, 0, 0});
  at(288, {0, 0, 0, 0, 0, 0, 0, 0, 0, 0x80, 1, 0, 0, 0, 0, 0});
  at(4092, {0x57, 0xc6, 0x7b, 0xcb});  // by another program
  EXPECT_EQ(encode_set_descriptor(parity_of_three()), expected);
  EXPECT_EQ(decode_set_descriptor(expected, "file"), parity_of_three());
}

}  // namespace
}  // namespace kedge::format::testing::set_descriptor_test

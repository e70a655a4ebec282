// Attributes as HDF5's own: which are shown, that their values are overwritten in place, and what asks for a new
// layout. What h5py reads is tried in interop/.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "format/hdf5_attributes.hpp"
#include "unit/format/manifest_support.hpp"

namespace kedge::format::testing::shown_attributes_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> keys_of(const std::vector<Hdf5Attribute>& shown) {
  std::vector<std::string> keys;
  keys.reserve(shown.size());
  for (const Hdf5Attribute& attribute : shown) keys.push_back(attribute.key);
  return keys;
}

TEST(ShownAttributes, EveryKindHasItsFormAndTextHasRoom) {
  const auto shown = select_shown_attributes({{"array", std::vector<std::int64_t>{1, 2, 3}},
                                              {"empty", std::vector<double>{}},
                                              {"number", 0.5},
                                              {"text", std::string(64, 'x')},
                                              {"whole", std::int64_t{7}}});
  ASSERT_THAT(keys_of(shown), ElementsAre("array", "empty", "number", "text", "whole"));
  EXPECT_EQ(shown[0].count, 3U);
  EXPECT_EQ(shown[0].capacity_bytes, 24U);
  EXPECT_EQ(shown[1].count, 0U);
  EXPECT_EQ(shown[1].kind, Hdf5Attribute::Kind::integer) << "as it is read back from JSON";
  EXPECT_EQ(shown[2].kind, Hdf5Attribute::Kind::number);
  EXPECT_EQ(shown[2].count, std::nullopt);
  EXPECT_EQ(shown[3].capacity_bytes, 128U);
  EXPECT_EQ(shown[4].capacity_bytes, 8U);
}

TEST(ShownAttributes, WhatHdf5HasNoPlaceForIsLeftOut) {
  EXPECT_THAT(keys_of(select_shown_attributes({{"fits", std::string(32767, 'x')},
                                               {"long", std::string(32768, 'x')},
                                               {"many", std::vector<double>(4097)},
                                               {std::string("nul\0x", 5), std::int64_t{1}}})),
              ElementsAre("fits"));
  Attributes thousands;
  for (int i = 0; i < 1500; ++i) thousands.emplace(compose("{:04}", i), std::int64_t{i});
  const auto shown = select_shown_attributes(thousands);
  ASSERT_EQ(shown.size(), 1000U);
  EXPECT_EQ(shown.back().key, "0999");
}

TEST(ShownAttributes, TheGreatestThatIsShownFitsIntoHdf5) {
  std::string longest = "\xce\xb1/";  // of a key
  longest.resize(255, '.');
  Attributes many;
  for (int i = 0; i < 1000; ++i) many.emplace(compose("{:04}", i), std::int64_t{i});
  for (const Attributes& attributes :
       {Attributes{{longest, std::string(32767, 'x')}}, Attributes{{longest, std::vector<double>(4096, 0.5)}}, many}) {
    const auto files = files_of(1);
    MemoryFile file(
        encode_manifest(*make_manifest_layout(nullptr, files, attributes), head_of(1), rows_of(files), attributes));
    EXPECT_EQ(reader_of(file).attributes(), attributes);
    EXPECT_TRUE(reader_of(file).verify().empty());
  }
}

TEST(ShownAttributes, AnotherFormAsksForANewLayout) {
  const auto files = files_of(1);
  const Attributes attributes{{"cells", std::vector<std::int64_t>{3, 4}}, {"code", std::string("v1.2")}, {"time", 0.5}};
  const auto layout = make_manifest_layout(nullptr, files, attributes);
  const auto with = [&](const std::string& key, AttributeValue value) {
    Attributes changed = attributes;
    changed[key] = std::move(value);
    return can_hold_attributes(*layout, changed);
  };
  EXPECT_TRUE(with("time", 1.5));
  EXPECT_TRUE(with("cells", std::vector<std::int64_t>{-1, 5}));
  EXPECT_TRUE(with("code", std::string(63, 'x')));
  EXPECT_FALSE(with("code", std::string(64, 'x'))) << "longer than the room";
  EXPECT_FALSE(with("time", std::int64_t{1})) << "another type";
  EXPECT_FALSE(with("cells", std::vector<std::int64_t>{1, 2, 3})) << "another length";
  EXPECT_FALSE(with("more", 1.0)) << "another key";
  EXPECT_FALSE(can_hold_attributes(*layout, {}));
  EXPECT_FALSE(can_hold_attributes(*make_manifest_layout(nullptr, files, {}), attributes));
}

TEST(ShownAttributes, ValuesAreOverwrittenAndGuarded) {
  const auto files = files_of(2);
  const Attributes first{{"code", std::string("aaaa")}, {"time", 0.5}};
  const auto layout = make_manifest_layout(nullptr, files, first);
  const Attributes second{{"code", std::string("b")}, {"time", -1e300}};
  const MemoryFile one(encode_manifest(*layout, head_of(2), rows_of(files), first));
  MemoryFile two(encode_manifest(*layout, head_of(2), rows_of(files), second));
  ASSERT_EQ(one.content.size(), two.content.size());
  EXPECT_TRUE(reader_of(two).verify().empty());
  // The values stand in HDF5's metadata, once, and nowhere is what HDF5 was given in their place.
  const std::array<double, 1> number{-1e300};
  const auto bytes = std::as_bytes(std::span(number));
  const auto metadata = std::search(two.content.begin(), two.content.end(), bytes.begin(), bytes.end());
  ASSERT_NE(metadata, two.content.end());
  const auto offset = static_cast<std::uint64_t>(metadata - two.content.begin());
  two.content[offset] ^= std::byte{1};
  const auto damages = reader_of(two).verify();
  ASSERT_EQ(damages.size(), 1U);
  EXPECT_EQ(damages[0].description, "HDF5 metadata");
}

TEST(ShownAttributes, EachIsFoundExactlyOnceOrNotAtAll) {
  const Attributes attributes{{"a", std::int64_t{1}}, {"b", std::string("x")}};
  const auto refusal = [&](const std::function<void(std::vector<std::byte>&)>& change) {
    auto shown = select_shown_attributes(attributes);
    std::vector<std::byte> file(100, std::byte{0});
    for (std::size_t i = 0; i < shown.size(); ++i) {
      std::ranges::copy(make_marked_value(shown[i], i), std::back_inserter(file));
      file.resize(file.size() + 9);
    }
    change(file);
    try {
      locate_values(shown, file);
      EXPECT_EQ(shown[0].offset, 100U);
      EXPECT_EQ(shown[1].offset, 117U);
      EXPECT_TRUE(std::ranges::all_of(file, [](std::byte b) { return b == std::byte{0}; })) << "marks are left";
      return std::string();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::io);
      return error.failure().message;
    }
  };
  EXPECT_EQ(refusal([](auto&) {}), "");
  EXPECT_THAT(refusal([](auto& file) { file[101] = std::byte{0}; }), HasSubstr("please report")) << "one is missing";
  EXPECT_THAT(refusal([](auto& file) { std::copy_n(file.begin() + 100, 8, file.begin()); }), HasSubstr("please report"))
      << "one is there twice";
  EXPECT_THAT(refusal([](auto& file) { file[117 + 5] = std::byte{0}; }), HasSubstr("please report"))
      << "one is there twice, and the other not";
  EXPECT_THAT(refusal([](auto& file) { file[105] = std::byte{9}; }), HasSubstr("please report")) << "an unknown one";
  EXPECT_THAT(refusal([](auto& file) { file[130] = std::byte{9}; }), HasSubstr("please report"))
      << "not what was given";
  EXPECT_THAT(refusal([](auto& file) { file.resize(150); }), HasSubstr("please report")) << "it is cut";
}

}  // namespace
}  // namespace kedge::format::testing::shown_attributes_test

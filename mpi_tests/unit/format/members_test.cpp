// The text that describes a struct: what is accepted, and what is refused before it reaches HDF5.
#include "format/members.hpp"

#include <gtest/gtest.h>

#include "base/text.hpp"
#include "format/region_spec.hpp"

namespace kedge::format::members_test {
namespace {

TEST(Members, ATextIsReadAsItWasWritten) {
  const std::vector<Member> expected{
      {"x", DataType::float64, {}, 0}, {"v", DataType::float32, {3, 2}, 8}, {"on", DataType::boolean, {}, 39}};
  EXPECT_EQ(check_members("x:float64@0;v:float32[3,2]@8;on:bool@39", 40), "");
  EXPECT_EQ(parse_members("x:float64@0;v:float32[3,2]@8;on:bool@39"), expected);
}

TEST(Members, EveryTypeCanBeAMember) {
  for (int number = 1; number <= static_cast<int>(kLastDataType); ++number) {
    const auto dtype = static_cast<DataType>(number);
    const std::vector<Member> expected{{"x", dtype, {2}, 8}};
    EXPECT_EQ(parse_members(kedge::compose("x:{}[2]@8", to_string(dtype))), expected) << to_string(dtype);
  }
}

TEST(Members, WhatDoesNotFitAStructIsRefused) {
  for (const char* text : {"",
                           "x",
                           "x:",
                           "x:float64",
                           "x@0",
                           ":float64@0",
                           "x:float65@0",
                           "x:float64@",
                           "x:float64@-1",
                           "x:float64@01",
                           "x:float64@0;",
                           ";x:float64@0",
                           "x y:float64@0",
                           "x:float64[]@0",
                           "x:float64[0]@0",
                           "x:float64[2@0",
                           "x:float64 2]@0",
                           "x:float64[1,1,1,1,1,1,1,1,1]@0",
                           "x:float64@0;x:float64@8",
                           "x:float64@0;y:float64@4",
                           "y:float64@8;x:float64@0",
                           "x:float64@33",
                           "x:float64@40",
                           "x:float64[6]@0",
                           "x:uint8[18446744073709551615,2]@0",
                           "x:float64[18446744073709551615]@0",
                           "x:float64[2305843009213693952]@0",
                           "x:uint8[4294967296,4294967296]@0",
                           "x:uint8@18446744073709551615",
                           "x:uint8@18446744073709551616"}) {
    EXPECT_NE(check_members(text, 40), "") << text;
  }
  EXPECT_NE(check_members(std::string(64, 'x') + ":uint8@0", 40), "");
  EXPECT_EQ(check_members(std::string(63, 'x') + ":uint8@0", 40), "");
  std::string many;
  for (int i = 0; i < 500; ++i) many += (i == 0 ? "a" : ";a") + std::to_string(i) + ":uint8@" + std::to_string(i);
  EXPECT_NE(check_members(many, 500), "") << "longer than 4096";
}

TEST(Members, OnlyOpaqueRegionsOfWholeStructsHaveThem) {
  const RegionSpec good{"a", DataType::opaque, {5, 8}, {}, false, "x:float64@0"};
  EXPECT_FALSE(check_region_spec(good));
  RegionSpec sharded = good;
  sharded.placement = Shard{{10, 8}, {5, 0}};
  EXPECT_FALSE(check_region_spec(sharded));
  sharded.placement = Shard{{10, 16}, {5, 8}};
  EXPECT_TRUE(check_region_spec(sharded));
  RegionSpec bad = good;
  bad.dtype = DataType::uint8;
  EXPECT_TRUE(check_region_spec(bad));
  bad = good;
  bad.shape = {};
  EXPECT_TRUE(check_region_spec(bad));
  bad.shape = {5, 0};
  EXPECT_TRUE(check_region_spec(bad));
  bad.shape = {5, 7};
  EXPECT_TRUE(check_region_spec(bad));
  bad = good;
  bad.is_routed = true;
  EXPECT_TRUE(check_region_spec(bad));
}

}  // namespace
}  // namespace kedge::format::members_test

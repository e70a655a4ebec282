// Basic types and texts: elements are counted without overflow, an error is one sentence with code, rank, path and
// reason, networks are named by interface or subnet.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/network.hpp"
#include "base/random.hpp"
#include "base/text.hpp"
#include "kedge/error.hpp"
#include "kedge/types.hpp"

namespace kedge::base_test {
namespace {

TEST(Types, CountElementsAndRefuseOverflow) {
  std::uint64_t count = 0;
  EXPECT_TRUE(element_count(Shape{}, count));
  EXPECT_EQ(count, 1U);
  EXPECT_TRUE(element_count(Shape{3, 4}, count));
  EXPECT_EQ(count, 12U);
  EXPECT_TRUE(element_count(Shape{1ULL << 40U, 0, 1ULL << 40U}, count));
  EXPECT_EQ(count, 0U);
  EXPECT_FALSE(element_count(Shape{1ULL << 40U, 1ULL << 40U}, count));
  EXPECT_TRUE((Shape{1, 1, 1, 1, 1, 1, 1, 1, 1}).too_long());
}

TEST(Types, FollowTheElementTypes) {
  EXPECT_EQ(kDataType<double>, DataType::float64);
  EXPECT_EQ(kDataType<const unsigned char>, DataType::uint8);
  EXPECT_EQ(kDataType<long>, DataType::int64);
  EXPECT_EQ(kDataType<bool>, DataType::boolean);
  EXPECT_EQ(kDataType<std::complex<float>>, DataType::complex64);
  EXPECT_EQ(size_bytes(DataType::complex128), 16U);
  EXPECT_EQ(size_bytes(static_cast<DataType>(99)), 0U);
}

TEST(Types, HaveTheNumbersThatAreOnDiskAndNamesOfTheirOwn) {
  EXPECT_EQ(static_cast<int>(DataType::float8_e4m3fn), 17);
  EXPECT_EQ(static_cast<int>(DataType::float8_e5m2), 18);
  EXPECT_EQ(to_string(DataType::float8_e4m3fn), "float8_e4m3fn");
  EXPECT_EQ(to_string(DataType::float8_e5m2), "float8_e5m2");
  std::set<std::string_view> names;
  for (int number = 1; number <= static_cast<int>(kLastDataType); ++number) {
    const auto dtype = static_cast<DataType>(number);
    EXPECT_GT(size_bytes(dtype), 0U) << number;
    EXPECT_TRUE(to_string(dtype) != "unknown" && names.insert(to_string(dtype)).second) << number;
  }
  EXPECT_EQ(size_bytes(static_cast<DataType>(static_cast<int>(kLastDataType) + 1)), 0U) << "the last one";
}

TEST(Errors, SayCodeRankPathAndReason) {
  const Error error(Failure{ErrorCode::no_space, "the store is full", 3, "/store/x", 28});
  EXPECT_EQ(std::string_view(error.what()),
            "no_space on rank 3: the store is full (/store/x: No space left on device)");
}

TEST(Units, AreReadable) {
  EXPECT_EQ(human_bytes(0), "0 B");
  EXPECT_EQ(human_bytes(1536), "1.5 KiB");
  EXPECT_EQ(human_seconds(0.0123), "12.3 ms");
  EXPECT_EQ(human_seconds(200), "3 min 20 s");
  EXPECT_EQ(human_seconds(47 * 3600 + 120), "47 h 2 min");
  EXPECT_EQ(human_seconds(50 * 3600), "2 days 2 h");
}

TEST(Networks, AreNamesOfInterfacesAndSubnets) {
  EXPECT_EQ(parse_networks(""), std::vector<std::string>());
  EXPECT_EQ(parse_networks("ib0"), std::vector<std::string>{"ib0"});
  EXPECT_EQ(parse_networks("eth0.7,10.1.0.0/16,fd00::/8"),
            (std::vector<std::string>{"eth0.7", "10.1.0.0/16", "fd00::/8"}));
  for (const std::string_view bad : {",", "ib0,", ",ib0", "ib 0", "an-interface-of-16", "10.1.0.0/33", "10.1.0/16",
                                     "10.1.0.0/", "10.1.0.0/-1", "fd00::/129", "ib0/24", "a:b", "a@b"}) {
    EXPECT_FALSE(parse_networks(bad)) << bad;
  }
}

TEST(Networks, ASubnetContainsWhatSharesItsPrefix) {
  const auto in = [](std::string_view subnet, std::vector<std::uint8_t> address) {
    return contains(parse_subnet(subnet).value(), address);
  };
  EXPECT_TRUE(in("10.1.0.0/16", {10, 1, 255, 7}));
  EXPECT_FALSE(in("10.1.0.0/16", {10, 2, 0, 7}));
  EXPECT_TRUE(in("10.1.2.128/25", {10, 1, 2, 129}));
  EXPECT_FALSE(in("10.1.2.128/25", {10, 1, 2, 127}));
  EXPECT_TRUE(in("10.1.2.3/32", {10, 1, 2, 3}));
  EXPECT_FALSE(in("10.1.2.3/32", {10, 1, 2, 2}));
  EXPECT_TRUE(in("0.0.0.0/0", {200, 1, 2, 3}));
  EXPECT_FALSE(in("::/0", {200, 1, 2, 3}));  // another family
  EXPECT_TRUE(in("fd00::/8", {0xfd, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}));
}

TEST(Random, IdsDiffer) { EXPECT_NE(random_id(), random_id()); }

}  // namespace
}  // namespace kedge::base_test

// What stands where a container is missing: for every type a value that nobody takes for data.
#include "format/fill_value.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <cstring>
#include <limits>

namespace kedge::format::fill_value_test {
namespace {

template <class T>
T fill_as(DataType dtype) {
  const auto bytes = fill_value(dtype);
  T value{};
  EXPECT_EQ(bytes.size(), sizeof value);
  if (bytes.size() == sizeof value) std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

TEST(FillValue, EveryTypeHasOneOfItsSizeThatIsNotZero) {
  for (std::uint8_t type = 1; type <= static_cast<std::uint8_t>(kLastDataType); ++type) {
    const auto bytes = fill_value(static_cast<DataType>(type));
    EXPECT_EQ(bytes.size(), size_bytes(static_cast<DataType>(type)));
    EXPECT_NE(bytes, std::vector(bytes.size(), std::byte{0})) << to_string(static_cast<DataType>(type));
  }
}

TEST(FillValue, NumbersAreUnlikelyOnes) {
  EXPECT_EQ(fill_as<std::int8_t>(DataType::int8), std::numeric_limits<std::int8_t>::min());
  EXPECT_EQ(fill_as<std::int16_t>(DataType::int16), std::numeric_limits<std::int16_t>::min());
  EXPECT_EQ(fill_as<std::int32_t>(DataType::int32), std::numeric_limits<std::int32_t>::min());
  EXPECT_EQ(fill_as<std::int64_t>(DataType::int64), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(fill_as<std::uint8_t>(DataType::uint8), std::numeric_limits<std::uint8_t>::max());
  EXPECT_EQ(fill_as<std::uint64_t>(DataType::uint64), std::numeric_limits<std::uint64_t>::max());
  EXPECT_TRUE(std::isnan(fill_as<float>(DataType::float32)));
  EXPECT_TRUE(std::isnan(fill_as<double>(DataType::float64)));
  EXPECT_EQ(fill_as<std::uint16_t>(DataType::float16), 0x7E00);
  EXPECT_EQ(fill_as<std::uint16_t>(DataType::bfloat16), 0x7FC0);
  EXPECT_EQ(fill_as<std::uint8_t>(DataType::float8_e4m3fn), 0x7F);
  EXPECT_EQ(fill_as<std::uint8_t>(DataType::float8_e5m2), 0x7E);
  const auto single = fill_as<std::complex<float>>(DataType::complex64);
  const auto twice = fill_as<std::complex<double>>(DataType::complex128);
  EXPECT_TRUE(std::isnan(single.real()) && std::isnan(single.imag()));
  EXPECT_TRUE(std::isnan(twice.real()) && std::isnan(twice.imag()));
  EXPECT_EQ(fill_as<std::uint8_t>(DataType::boolean), 0xFF) << "neither FALSE nor TRUE";
  EXPECT_EQ(fill_as<std::uint8_t>(DataType::opaque), 0xFF);
}

TEST(FillValue, AStructHasThatOfEachMemberAndZerosBetween) {
  const auto bytes = fill_value("id:int16@0;x:float32[2]@4", 16);
  const std::vector<unsigned> expected{0, 0x80, 0, 0, 0, 0, 0xC0, 0x7F, 0, 0, 0xC0, 0x7F, 0, 0, 0, 0};
  ASSERT_EQ(bytes.size(), expected.size());
  for (std::size_t i = 0; i < bytes.size(); ++i) EXPECT_EQ(std::to_integer<unsigned>(bytes[i]), expected[i]) << i;
}

}  // namespace
}  // namespace kedge::format::fill_value_test

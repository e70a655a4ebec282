// Attributes as JSON: what comes back, what is refused, on the way in and from damaged files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "format/attributes.hpp"

namespace kedge::format::testing::attributes_test {
namespace {

using ::testing::HasSubstr;

std::string refused(const Attributes& attributes) {
  const auto failure = check_attributes(attributes);
  if (!failure) return {};
  EXPECT_EQ(failure->code, ErrorCode::invalid_argument);
  return failure->message;
}

std::string refusal(std::string_view text) {
  try {
    static_cast<void>(decode_attributes(text, "the/path"));
    return {};
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::corrupt);
    EXPECT_EQ(error.failure().path, "the/path");
    return error.failure().message;
  }
}

Attributes again(const Attributes& attributes) {
  EXPECT_EQ(refused(attributes), "");
  return decode_attributes(encode_attributes(attributes) + "   ", "file");
}

TEST(FormatAttributes, AreReadAsTheyWereWritten) {
  constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  const Attributes attributes{
      {"step", std::int64_t{100}},
      {"least", kMin},
      {"most", kMax},
      {"whole", 3.0},
      {"time", 0.1},
      {"tiny", std::numeric_limits<double>::denorm_min()},
      {"huge", std::numeric_limits<double>::max()},
      {"code", std::string("v1.2 \"quoted\" \\ \n \x01 \xce\xb1")},
      {"zero byte", std::string("a\0b", 3)},
      {"nothing", std::string()},
      {"cells", std::vector<std::int64_t>{3, kMin, kMax}},
      {"origin", std::vector<double>{0, 1, -0.5}},
      {"none", std::vector<std::int64_t>{}},
      {"\xce\xb1/b c", std::int64_t{1}},
      {std::string(kAttributeKeyBytesMax, 'k'), std::int64_t{1}},
  };
  EXPECT_EQ(again(attributes), attributes);
  EXPECT_EQ(again({}), Attributes{});
  EXPECT_TRUE(std::signbit(std::get<double>(again({{"a", -0.0}}).at("a"))));
  EXPECT_EQ(again({{"a", std::vector<double>{}}}), (Attributes{{"a", std::vector<std::int64_t>{}}}));
}

TEST(FormatAttributes, AreOneJsonObject) {
  EXPECT_EQ(encode_attributes({}), "{}");
  EXPECT_EQ(
      encode_attributes({{"b", 2.0}, {"a", std::int64_t{1}}, {"c", std::vector<double>{1}}, {"d", std::string("x")}}),
      R"({"a":1,"b":2.0,"c":[1.0],"d":"x"})");
}

TEST(FormatAttributes, WhatJsonOrTheirRoomCannotHoldIsRefused) {
  EXPECT_THAT(refused({{"", std::int64_t{1}}}), HasSubstr("empty"));
  EXPECT_THAT(refused({{std::string(256, 'k'), std::int64_t{1}}}), HasSubstr("longer than 255"));
  EXPECT_THAT(refused({{"\xff", std::int64_t{1}}}), HasSubstr(R"(invalid attribute key '\xff': it is not UTF-8)"));
  EXPECT_THAT(refused({{"a", std::string("\xff")}}), HasSubstr("'a' cannot be stored: its text is not UTF-8"));
  for (const double number : {std::nan(""), HUGE_VAL, -HUGE_VAL}) {
    EXPECT_THAT(refused({{"a", number}}), HasSubstr("'a' cannot be stored: its value is not finite"));
    EXPECT_THAT(refused({{"a", std::vector<double>{1, 2, number}}}), HasSubstr("element 2 is not finite"));
  }
  EXPECT_EQ(refused({{"a", std::string(kAttributesBytesMax - 8, 'x')}}), "");
  EXPECT_THAT(refused({{"a", std::string(kAttributesBytesMax - 7, 'x')}}), HasSubstr("65537 bytes"));
}

TEST(FormatAttributes, DamagedOnesAreRefused) {
  EXPECT_EQ(refusal("{}"), "");
  EXPECT_EQ(refusal(R"( {"a": [1, 2.5]} )"), "");
  for (const std::string_view text : {"", "   ", "[]", "1", "null", "{", "{}x", R"({"a":})", R"({"a":1} {})",
                                      R"({"a":1e999})", "{\"\xff\":1}", "{\"a\":\"\xff\"}"}) {
    EXPECT_THAT(refusal(text), HasSubstr("not a JSON object")) << text;
  }
  for (const std::string_view value :
       {"null", "true", "{}", "[[1]]", "[1,\"a\"]", "[null]", "9223372036854775808", "[9223372036854775808]"}) {
    EXPECT_THAT(refusal("{\"a\":" + std::string(value) + "}"), HasSubstr("attribute 'a'")) << value;
  }
  EXPECT_THAT(refusal(R"({"":1})"), HasSubstr("empty"));
  EXPECT_THAT(refusal("{}" + std::string(kAttributesBytesMax, ' ')), HasSubstr("too long"));
  EXPECT_NE(refusal(std::string(60000, '[')), "") << "deep";
  EXPECT_NE(refusal("{\"a\":" + std::string(30000, '[') + std::string(30000, ']') + "}"), "");
}

}  // namespace
}  // namespace kedge::format::testing::attributes_test

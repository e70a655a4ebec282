// Points in time as users write them: seconds since 1970, or a date and time with or without a zone; nothing else.
#include "base/timestamp.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>
#include <string>

namespace kedge::moment_test {
namespace {

constexpr double kTimestamp = 1'764'108'000;  // date -u -d @1764108000: 2025-11-25T22:00:00Z

/// Local time is this one's while it lives.
class Zone {
 public:
  explicit Zone(const char* name) {
    if (const char* before = std::getenv("TZ")) before_ = before;
    ::setenv("TZ", name, 1);
    ::tzset();
  }
  ~Zone() {
    if (before_.empty()) ::unsetenv("TZ");
    else ::setenv("TZ", before_.c_str(), 1);
    ::tzset();
  }
  Zone(const Zone&) = delete;
  Zone& operator=(const Zone&) = delete;

 private:
  std::string before_;
};

TEST(Moment, IsSecondsSince1970) {
  EXPECT_EQ(parse_timestamp("1764108000"), kTimestamp);
  EXPECT_EQ(parse_timestamp("1764108000.5"), kTimestamp + 0.5);
  EXPECT_EQ(parse_timestamp("0"), 0.0);
}

TEST(Moment, IsADateAndTimeWithAZone) {
  for (const char* text : {"2025-11-25T22:00:00Z", "2025-11-25t22:00:00z", "2025-11-25 22:00:00Z", "2025-11-25T22:00Z",
                           "2025-11-25T23:00:00+01:00", "2025-11-25T23:00:00+0100", "2025-11-25T23:00+01",
                           "2025-11-26T03:30:00+05:30", "2025-11-25T17:00:00-05:00", "2025-11-25T22:00:00.000Z"}) {
    EXPECT_EQ(parse_timestamp(text), kTimestamp) << text;
  }
  EXPECT_EQ(parse_timestamp("2025-11-25T22:00:00.25Z"), kTimestamp + 0.25);
  EXPECT_EQ(parse_timestamp("2024-02-29T00:00:00Z"), 1'709'164'800.0);
  EXPECT_EQ(parse_timestamp("1970-01-01T00:00:00Z"), 0.0);
}

TEST(Moment, WithoutAZoneIsLocalTime) {
  {
    const Zone zone("CET-1CEST,M3.5.0,M10.5.0/3");
    EXPECT_EQ(parse_timestamp("2025-11-25T23:00:00"), kTimestamp);
    EXPECT_EQ(parse_timestamp("2025-07-01T12:00:00"), 1'751'364'000.0) << "summer time";
    EXPECT_EQ(parse_timestamp("2025-11-25T22:00:00Z"), kTimestamp) << "a zone that is given counts";
  }
  const Zone zone("UTC0");
  EXPECT_EQ(parse_timestamp("2025-11-25T22:00:00"), kTimestamp);
  EXPECT_EQ(parse_timestamp("2025-11-25 22:00"), kTimestamp);
}

TEST(Moment, IsNothingElse) {
  for (const std::string text : {"",
                                 " ",
                                 "soon",
                                 "none",
                                 "-1",
                                 "+5",
                                 "1e9",
                                 "inf",
                                 "nan",
                                 "0x10",
                                 "1764108000s",
                                 " 1764108000",
                                 "1764108000 ",
                                 "1..5",
                                 ".",
                                 "253402300800",
                                 "99999999999999999999",
                                 "99999999999999999999999999999999999999999999999999",
                                 "2025-11-25",
                                 "2025-11-25T",
                                 "2025-11-25T22",
                                 "2025-11-25T22:00:",
                                 "2025-11-25T22:00:00.",
                                 "2025-11-25T22:00:00.Z",
                                 "2025-13-01T00:00:00Z",
                                 "2025-00-01T00:00:00Z",
                                 "2025-02-29T00:00:00Z",
                                 "2025-04-31T00:00:00Z",
                                 "2025-11-00T00:00:00Z",
                                 "2025-11-25T24:00:00Z",
                                 "2025-11-25T22:60:00Z",
                                 "2025-11-25T22:00:60Z",
                                 "1969-12-31T23:59:59Z",
                                 "1970-01-01T00:00:00+01:00",
                                 "9999-12-31T23:59:59-01:00",
                                 "20251125T220000Z",
                                 "2025-11-25T22:00:00ZZ",
                                 "2025-11-25T22:00:00Z ",
                                 "2025-11-25T22:00:00+",
                                 "2025-11-25T22:00:00+1",
                                 "2025-11-25T22:00:00+01:",
                                 "2025-11-25T22:00:00+15:00",
                                 "2025-11-25T22:00:00+01:60",
                                 "2025-1-5T22:00:00Z",
                                 "25-11-25T22:00:00Z",
                                 "2025/11/25 22:00:00",
                                 "2025-11-25T-2:00:00Z"}) {
    EXPECT_EQ(parse_timestamp(text), std::nullopt) << text;
  }
  EXPECT_EQ(parse_timestamp(std::string_view("1764108000\0", 11)), std::nullopt);
  EXPECT_EQ(parse_timestamp(std::string(100'000, '1')), std::nullopt);
  EXPECT_EQ(parse_timestamp("2025-11-25T22:00:00." + std::string(100'000, '0') + "Z"), kTimestamp);
}

TEST(Moment, IsPrintedAsItIsParsed) {
  EXPECT_EQ(format_timestamp(kTimestamp), "2025-11-25T22:00:00Z");
  EXPECT_EQ(format_timestamp(kTimestamp + 3'723.9), "2025-11-25T23:02:03Z");
  EXPECT_EQ(format_timestamp(0), "1970-01-01T00:00:00Z");
}

}  // namespace
}  // namespace kedge::moment_test

#include "base/timestamp.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <ctime>
#include <regex>

#include "base/options_values.hpp"
#include "base/text.hpp"

namespace kedge {
namespace {

constexpr double kSecondsMax = 253'402'300'800;  // the year 10000

/// A date and time; nothing if there is no such day or no such time.
std::optional<double> parse_date(std::string text) {
  double fraction = 0;
  if (const std::size_t point = text.find('.'); point != std::string::npos) {
    const std::size_t end = std::min(text.find_first_not_of("0123456789", point + 1), text.size());
    if (point != std::string_view("2026-11-25T22:00:00").size() || end == point + 1) return std::nullopt;
    fraction = std::stod(text.substr(point, end - point));
    text.erase(point, end - point);
  }
  static const std::regex pattern(
      R"((\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d)(?::(\d\d))?([Zz]|([+-])(\d\d)(?::?(\d\d))?)?)");
  std::smatch part;
  if (!std::regex_match(text, part, pattern)) return std::nullopt;
  const auto number = [&](std::size_t index) { return part[index].matched ? std::stoi(part[index].str()) : 0; };
  std::tm wall{};
  wall.tm_year = number(1) - 1900;
  wall.tm_mon = number(2) - 1;
  wall.tm_mday = number(3);
  wall.tm_hour = number(4);
  wall.tm_min = number(5);
  wall.tm_sec = number(6);
  const int zone_hours = number(9), zone_minutes = number(10);
  if (wall.tm_hour > 23 || wall.tm_min > 59 || wall.tm_sec > 59 || zone_hours > 14 || zone_minutes > 59) {
    return std::nullopt;
  }
  std::tm day = wall;
  const std::time_t as_utc = ::timegm(&day);  // turns February 30 into a day of March
  if (day.tm_mon != wall.tm_mon || day.tm_mday != wall.tm_mday || number(1) < 1970) return std::nullopt;
  const double east_s = (part[8] == "-" ? -1 : 1) * (zone_hours * 3600.0 + zone_minutes * 60.0);
  if (part[7].matched) return static_cast<double>(as_utc) + fraction - east_s;
  wall.tm_isdst = -1;  // as it is there on that day
  const std::time_t local = std::mktime(&wall);
  return local == -1 ? std::nullopt : std::optional(static_cast<double>(local) + fraction);
}

/// from_chars would take "inf" and "1e9", too.
std::optional<double> parse_seconds(std::string_view text) {
  if (text.empty() || text.find_first_not_of("0123456789.") != std::string_view::npos) return std::nullopt;
  return parse_number<double>(text);
}

}  // namespace

std::optional<double> parse_timestamp(std::string_view text) {
  auto seconds = parse_seconds(text);
  if (!seconds) seconds = parse_date(std::string(text));
  if (!seconds || !(*seconds >= 0 && *seconds < kSecondsMax)) return std::nullopt;
  return seconds;
}

std::string format_utc(std::int64_t seconds_since_1970, char between) {
  const std::time_t seconds = seconds_since_1970;
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  return compose("{:04}-{:02}-{:02}{}{:02}:{:02}:{:02}", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday, between,
                 parts.tm_hour, parts.tm_min, parts.tm_sec);
}

std::string format_timestamp(double seconds_since_1970) {
  return format_utc(static_cast<std::int64_t>(std::floor(seconds_since_1970))) + "Z";
}

}  // namespace kedge

#include "base/timestamp.hpp"

#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <ctime>
#include <system_error>

#include "base/text.hpp"

namespace kedge {
namespace {

using std::chrono::sys_days;
using std::chrono::year_month_day;

constexpr double kSecondsMax = 253'402'300'800;  // the year 10000

/// Takes a text apart from its beginning. Once something is not there, nothing that follows is.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : rest_(text) {}

  [[nodiscard]] bool is_good() const noexcept { return good_; }
  [[nodiscard]] bool at_end() const noexcept { return rest_.empty(); }

  /// One of these characters, if it is next; else 0.
  char accept(std::string_view any_of) {
    if (rest_.empty() || any_of.find(rest_.front()) == std::string_view::npos) return 0;
    const char found = rest_.front();
    rest_.remove_prefix(1);
    return found;
  }
  void expect(std::string_view any_of) { good_ = accept(any_of) != 0 && good_; }

  /// A number of exactly so many digits, in this range.
  int number(std::size_t digits, int least, int most) {
    int value = 0;
    std::size_t found = 0;
    for (; found < digits && !rest_.empty() && is_digit(rest_.front()); ++found) {
      value = value * 10 + (rest_.front() - '0');
      rest_.remove_prefix(1);
    }
    good_ = good_ && found == digits && value >= least && value <= most;
    return value;
  }
  /// Digits after a decimal point, as a fraction.
  double fraction() {
    double value = 0, weight = 0.1;
    good_ = good_ && !rest_.empty() && is_digit(rest_.front());
    for (; !rest_.empty() && is_digit(rest_.front()); weight /= 10) {
      value += weight * (rest_.front() - '0');
      rest_.remove_prefix(1);
    }
    return value;
  }

 private:
  static bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }

  std::string_view rest_;
  bool good_ = true;
};

/// A date and time without its zone.
struct Wall {
  year_month_day day{};
  int hour = 0;
  int minute = 0;
  int second = 0;
};

double as_utc(const Wall& wall) {
  const std::chrono::seconds since_1970 = sys_days(wall.day).time_since_epoch() + std::chrono::hours(wall.hour) +
                                          std::chrono::minutes(wall.minute) + std::chrono::seconds(wall.second);
  return static_cast<double>(since_1970.count());
}

std::optional<double> as_local(const Wall& wall) {
  std::tm parts{};
  parts.tm_year = static_cast<int>(wall.day.year()) - 1900;
  parts.tm_mon = static_cast<int>(static_cast<unsigned>(wall.day.month())) - 1;
  parts.tm_mday = static_cast<int>(static_cast<unsigned>(wall.day.day()));
  parts.tm_hour = wall.hour;
  parts.tm_min = wall.minute;
  parts.tm_sec = wall.second;
  parts.tm_isdst = -1;  // as it is there on that day
  const std::time_t seconds = std::mktime(&parts);
  if (seconds == -1) return std::nullopt;
  return static_cast<double>(seconds);
}

std::optional<double> parse_date(std::string_view text) {
  Scanner scan(text);
  const int year = scan.number(4, 1970, 9999);
  scan.expect("-");
  const int month = scan.number(2, 1, 12);
  scan.expect("-");
  const int day = scan.number(2, 1, 31);
  Wall wall{year_month_day(std::chrono::year(year), std::chrono::month(static_cast<unsigned>(month)),
                           std::chrono::day(static_cast<unsigned>(day)))};
  scan.expect("Tt ");
  wall.hour = scan.number(2, 0, 23);
  scan.expect(":");
  wall.minute = scan.number(2, 0, 59);
  double part = 0;
  if (scan.accept(":") != 0) {
    wall.second = scan.number(2, 0, 59);
    if (scan.accept(".") != 0) part = scan.fraction();
  }
  const char zone = scan.accept("Zz+-");
  double east_s = 0;
  if (zone == '+' || zone == '-') {
    const int hours = scan.number(2, 0, 14);
    const bool has_minutes = scan.accept(":") != 0 || !scan.at_end();
    const int minutes = has_minutes ? scan.number(2, 0, 59) : 0;
    east_s = (zone == '+' ? 1 : -1) * (hours * 3600.0 + minutes * 60.0);
  }
  if (!scan.is_good() || !scan.at_end() || !wall.day.ok()) return std::nullopt;
  if (zone != 0) return as_utc(wall) + part - east_s;
  const auto local = as_local(wall);
  return local ? std::optional(*local + part) : std::nullopt;
}

/// from_chars would take "inf" and "1e9", too.
std::optional<double> parse_seconds(std::string_view text) {
  if (text.empty() || text.find_first_not_of("0123456789.") != std::string_view::npos) return std::nullopt;
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

std::optional<double> parse_timestamp(std::string_view text) {
  auto seconds = parse_seconds(text);
  if (!seconds) seconds = parse_date(text);
  if (!seconds || !(*seconds >= 0 && *seconds < kSecondsMax)) return std::nullopt;
  return seconds;
}

std::string format_timestamp(double seconds_since_1970) {
  const auto whole = static_cast<std::int64_t>(std::floor(seconds_since_1970));
  const auto days = std::chrono::floor<std::chrono::days>(std::chrono::sys_seconds(std::chrono::seconds(whole)));
  const year_month_day day(days);
  const auto of_day = whole - std::chrono::seconds(days.time_since_epoch()).count();
  return compose("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", static_cast<int>(day.year()),
                 static_cast<unsigned>(day.month()), static_cast<unsigned>(day.day()), of_day / 3600, of_day / 60 % 60,
                 of_day % 60);
}

}  // namespace kedge

#include "base/units.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>

namespace kedge {

std::string human_bytes(std::uint64_t size_bytes) {
  static constexpr std::array kUnits = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = static_cast<double>(size_bytes);
  std::size_t unit = 0;
  while (value >= 1024.0 && unit + 1 < kUnits.size()) {
    value /= 1024.0;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} B", size_bytes) : fmt::format("{:.1f} {}", value, kUnits.at(unit));
}

std::string human_seconds(double seconds) {
  if (seconds < 1e-3) return fmt::format("{:.0f} us", seconds * 1e6);
  if (seconds < 1.0) return fmt::format("{:.1f} ms", seconds * 1e3);
  if (seconds < 60.0) return fmt::format("{:.2f} s", seconds);
  const auto minutes = static_cast<std::uint64_t>(seconds / 60.0);
  if (minutes < 60) return fmt::format("{} min {:.0f} s", minutes, std::floor(std::fmod(seconds, 60.0)));
  const std::uint64_t hours = minutes / 60;
  if (hours < 48) return fmt::format("{} h {} min", hours, minutes % 60);
  return fmt::format("{} days {} h", hours / 24, hours % 24);
}

}  // namespace kedge

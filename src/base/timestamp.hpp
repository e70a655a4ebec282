// Moments in time as people and batch systems write them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace kedge {

/// Seconds since 1970, of "1764108000", "1764108000.5", or a date and time by ISO 8601: "2026-11-25T22:00:00Z",
/// "2026-11-25 22:00", "2026-11-25T22:00:00.25+01:00". Without a zone it is this machine's local time, as Slurm prints
/// it. Nothing if it is anything else, or not between 1970 and 9999.
[[nodiscard]] std::optional<double> parse_timestamp(std::string_view text);

/// Pure. "2026-11-25T22:00:00": date and time in UTC, with this character between them.
[[nodiscard]] std::string format_utc(std::int64_t seconds_since_1970, char between = 'T');

/// Pure. "2026-11-25T22:00:00Z", of seconds from 0 to those that parse_timestamp gives.
[[nodiscard]] std::string format_timestamp(double seconds_since_1970);

}  // namespace kedge

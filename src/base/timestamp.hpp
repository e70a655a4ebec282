// Moments in time as people and batch systems write them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace kedge {

/// Parses seconds since 1970, "1764108000" or "1764108000.5", or a date and time by ISO 8601: "2026-11-25T22:00:00Z",
/// "2026-11-25 22:00", "2026-11-25T22:00:00.25+01:00". Without a zone it is this machine's local time, as Slurm prints
/// it. Returns nothing if the text is invalid, or not between 1970 and 9999.
[[nodiscard]] std::optional<double> parse_timestamp(std::string_view text);

/// Returns date and time in UTC, separated by `between`: "2026-11-25T22:00:00". Pure.
[[nodiscard]] std::string format_utc(std::int64_t seconds_since_1970, char between = 'T');

/// Returns "2026-11-25T22:00:00Z", for seconds from 0 up to the latest that parse_timestamp() returns. Pure.
[[nodiscard]] std::string format_timestamp(double seconds_since_1970);

}  // namespace kedge

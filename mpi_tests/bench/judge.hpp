// Whether rows reach their targets, or whether that cannot be said. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "series.hpp"
#include "table.hpp"
#include "targets.hpp"

namespace kedge_bench {

enum class Verdict : std::uint8_t {
  none,  ///< it has no target
  reached,
  missed,          ///< also where the base is noisy, if no pairing of what was measured reaches the target
  too_noisy,       ///< the row that it is compared with spreads by more than kMostSpread
  too_few_rounds,  ///< fewer than kLeastRounds
  no_disk,         ///< it is compared with writes to a disk, and there is none
};

/// "", "reached", "MISSED", "too noisy", "too few rounds", "no disk".
[[nodiscard]] std::string_view to_string(Verdict verdict) noexcept;

/// A row with its statistics. Points to the row.
struct Judged {
  const Row* row = nullptr;
  Summary values;
  std::optional<Summary> ratio;    ///< to the row that it is compared with, round by round
  double base_spread = 0;          ///< of that row
  const Target* target = nullptr;  ///< none
  Verdict verdict = Verdict::none;
};

/// Rows in the table's order. `on_disk` tells whether disk_write is what it says. Throws std::invalid_argument if
/// a row has no values, or not as many as the one that it is compared with, or another one than its target says.
[[nodiscard]] std::vector<Judged> judge(const Table& table, const Kind& kind, bool on_disk);

/// The round to set aside and measure again, if what rows are judged against spreads by more than kMostSpread: the one
/// where it was slowest. (That makes it harder for Kedge: a slow round of what it is compared with flatters it.)
[[nodiscard]] std::optional<std::size_t> disturbed_round(const Table& table, const Kind& kind);

/// What --check exits with: 1 if a target was missed, else 2 if it cannot be said of one, or if none was judged,
/// else 0.
[[nodiscard]] int exit_code(const std::vector<Judged>& rows) noexcept;

}  // namespace kedge_bench

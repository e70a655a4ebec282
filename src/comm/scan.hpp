// Prefix sums over ranks: what the ranks before this one have together.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kedge/communicator.hpp"

namespace kedge::comm {

/// COLLECTIVE. For each of `values` the sum over all lower ranks, modulo 2^64; all ranks must give equally many. Takes
/// log2(ranks) rounds of one message each (Hillis and Steele, "Data parallel algorithms", CACM 1986).
[[nodiscard]] std::vector<std::uint64_t> exclusive_scan(Communicator& communicator,
                                                        std::span<const std::uint64_t> values, Deadline deadline);

}  // namespace kedge::comm

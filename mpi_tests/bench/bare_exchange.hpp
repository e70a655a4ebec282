// What the network takes for the bytes that protect sends. Nothing of Kedge is used here.
#pragma once

#include <cstdint>

#include "data.hpp"

namespace kedge_bench {

/// COLLECTIVE. Every rank sends its data so many times over, in pieces of 512 KiB to so many ranks after it in turn,
/// and receives as much, into few buffers: nothing is computed and nothing is kept. Seconds of the slowest rank.
/// Throws std::runtime_error on all ranks.
[[nodiscard]] double bare_exchange(Buffers& buffers, std::uint64_t times, int peers);

/// COLLECTIVE. Whether messages leave the machine: not all ranks share memory.
[[nodiscard]] bool over_network();

}  // namespace kedge_bench

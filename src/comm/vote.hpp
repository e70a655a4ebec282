// Votes and agreements, by which ranks reach one outcome. Everything here works on the Communicator interface alone.
//
// In each call all ranks get equal reduced values and decide by them alone whether another round follows, so no rank
// waits alone in one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "kedge/communicator.hpp"
#include "kedge/error.hpp"

namespace kedge::comm {

/// COLLECTIVE. Returns nothing if no rank failed (one all-reduce); otherwise the failure of the lowest failing rank,
/// alike on all ranks, with that rank filled in and its texts cut to 2 KiB.
[[nodiscard]] std::optional<Failure> vote(Communicator& communicator, const std::optional<Failure>& local,
                                          Deadline deadline);

/// Result of a vote in which ranks could also request something.
struct VoteResult {
  std::optional<Failure> failure;  ///< as of vote()
  bool is_requested = false;       ///< whether any rank requested it
};

/// COLLECTIVE. Votes as vote() does, at the same cost; `asks` is this rank's request.
[[nodiscard]] VoteResult vote_with_request(Communicator& communicator, const std::optional<Failure>& local, bool asks,
                                           Deadline deadline);

/// Whether no call may communicate after such a failure, and no memory that a message uses may be freed: ranks may know
/// different things, and messages may still be in transit.
[[nodiscard]] constexpr bool ends_communication(ErrorCode code) noexcept {
  return code == ErrorCode::timeout || code == ErrorCode::rank_failed;
}

/// Throws the failure, if there is one.
void throw_if(const std::optional<Failure>& failure);

struct Difference {
  std::size_t index = 0;  ///< the first value that is not the same everywhere
  int rank_a = 0;         ///< two ranks that differ there, rank_a < rank_b
  int rank_b = 0;
};

/// COLLECTIVE. Returns the first of `values` that is not the same on every rank, and two ranks that differ; nothing if
/// all are the same. All ranks must give equally many, and get the same answer. Takes one all-reduce if nothing
/// differs, else two.
[[nodiscard]] std::optional<Difference> first_difference(Communicator& communicator,
                                                         std::span<const std::uint64_t> values, Deadline deadline);

/// A collective call that a rank is about to make.
struct CallId {
  std::uint32_t code = 0;           ///< which call
  std::uint64_t argument_hash = 0;  ///< hash of the arguments that must be the same everywhere
  std::uint64_t payload = 0;        ///< a number whose maximum all ranks get
};

/// Returns the name of a call, e.g. "create", for messages.
using CallName = std::string_view (*)(std::uint32_t code);

/// COLLECTIVE. Begins a collective call of the engine, in one all-reduce of fixed size, and returns the largest
/// payload. Throws the same Error on all ranks: bad_state naming both calls and two ranks if ranks are in different
/// calls; else the failure of the lowest rank that has a `local` one; else bad_state naming two ranks if their
/// arguments differ.
std::uint64_t agree_on_call(Communicator& communicator, const CallId& call, const std::optional<Failure>& local,
                            CallName name, Deadline deadline);

}  // namespace kedge::comm

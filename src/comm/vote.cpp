#include "comm/vote.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "base/text.hpp"

namespace kedge::comm {
namespace {

constexpr auto kNobody = std::numeric_limits<std::uint64_t>::max();

/// A failure as it travels between ranks of one job.
struct FailureRecord {
  static constexpr std::size_t kTextBytes = 2048 - 16;

  std::int32_t rank = -1;
  std::int32_t system_errno = 0;
  std::uint32_t code = 0;
  std::uint16_t message_bytes = 0;
  std::uint16_t path_bytes = 0;
  std::array<char, kTextBytes> text{};  // message, then path
};
static_assert(sizeof(FailureRecord) == 2048);

constexpr std::string_view kCut = "...";

bool begins_character(char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }

/// The first bytes of UTF-8 text, never half a character.
std::string cut_end(const std::string& text, std::size_t bytes) {
  if (text.size() <= bytes) return text;
  return std::string(truncate_utf8(text, bytes - kCut.size())).append(kCut);
}

/// The last bytes: of a path the file's name matters most.
std::string cut_begin(const std::string& text, std::size_t bytes) {
  if (text.size() <= bytes) return text;
  auto begin = text.size() - bytes + kCut.size();
  while (begin < text.size() && !begins_character(text[begin])) ++begin;
  return std::string(kCut).append(text, begin);
}

FailureRecord pack_address(const Failure& failure, int rank) {
  const auto path = cut_begin(failure.path, FailureRecord::kTextBytes / 2);
  const auto message = cut_end(failure.message, FailureRecord::kTextBytes - path.size());
  FailureRecord record;
  record.rank = failure.rank >= 0 ? failure.rank : rank;
  record.system_errno = failure.system_errno;
  record.code = static_cast<std::uint32_t>(failure.code);
  record.message_bytes = static_cast<std::uint16_t>(message.size());
  record.path_bytes = static_cast<std::uint16_t>(path.size());
  std::copy(message.begin(), message.end(), record.text.begin());
  std::copy(path.begin(), path.end(), record.text.begin() + static_cast<std::ptrdiff_t>(message.size()));
  return record;
}

Failure unpack_address(const FailureRecord& record) {
  const std::string_view text(record.text.data(), record.text.size());
  return {static_cast<ErrorCode>(record.code), std::string(text.substr(0, record.message_bytes)), record.rank,
          std::string(text.substr(record.message_bytes, record.path_bytes)), record.system_errno};
}

/// COLLECTIVE: what `failing` brought, on all ranks.
Failure share_failure(Communicator& communicator, const std::optional<Failure>& local, int failing, Deadline deadline) {
  FailureRecord record;
  if (communicator.rank() == failing) record = pack_address(local.value(), failing);
  communicator.broadcast(std::as_writable_bytes(std::span(&record, 1)), failing, deadline);
  return unpack_address(record);
}

/// COLLECTIVE: the smallest of each value over all ranks, then ~ of the largest of each: the minimum of ~x is
/// ~ of the maximum of x, so one reduction gives both ends.
std::vector<std::uint64_t> reduce_ends(Communicator& communicator, std::span<const std::uint64_t> values,
                                       Deadline deadline) {
  std::vector<std::uint64_t> ends(values.begin(), values.end());
  for (const auto value : values) ends.push_back(~value);
  communicator.all_reduce(ends, Reduction::min, deadline);
  return ends;
}

/// COLLECTIVE: the lowest rank that has the smallest value, then the lowest that has the largest.
std::array<int, 2> find_differing_ranks(Communicator& communicator, std::uint64_t mine, std::uint64_t smallest,
                                        std::uint64_t largest, Deadline deadline) {
  const auto rank = static_cast<std::uint64_t>(communicator.rank());
  std::array<std::uint64_t, 2> ranks{mine == smallest ? rank : kNobody, mine == largest ? rank : kNobody};
  communicator.all_reduce(ranks, Reduction::min, deadline);
  return {static_cast<int>(ranks[0]), static_cast<int>(ranks[1])};
}

/// COLLECTIVE. Who knows already that a rank is missing does not wait for it as long again, and says what it knows.
void gather_calls(Communicator& communicator, std::span<std::uint64_t> mins, const std::optional<Failure>& local,
                  Deadline deadline) {
  constexpr double kShare = 0.25;
  const bool is_ended = local && ends_communication(local->code);
  if (is_ended) deadline = Deadline::after(std::chrono::duration<double>(deadline.seconds_left() * kShare));
  try {
    communicator.all_reduce(mins, Reduction::min, deadline);
  } catch (const Error& error) {
    if (!is_ended || !ends_communication(error.code())) throw;
    Failure known = *local;
    if (known.rank < 0) known.rank = communicator.rank();
    throw Error(std::move(known));
  }
}

}  // namespace

std::optional<Failure> vote(Communicator& communicator, const std::optional<Failure>& local, Deadline deadline) {
  std::uint64_t failing = local ? static_cast<std::uint64_t>(communicator.rank()) : kNobody;
  communicator.all_reduce(std::span(&failing, 1), Reduction::min, deadline);
  if (failing == kNobody) return std::nullopt;
  return share_failure(communicator, local, static_cast<int>(failing), deadline);
}

VoteResult vote_with_request(Communicator& communicator, const std::optional<Failure>& local, bool asks,
                             Deadline deadline) {
  std::array<std::uint64_t, 2> mins{local ? static_cast<std::uint64_t>(communicator.rank()) : kNobody, asks ? 0U : 1U};
  communicator.all_reduce(mins, Reduction::min, deadline);
  VoteResult ballot;
  ballot.is_requested = mins[1] == 0;
  if (mins[0] != kNobody) ballot.failure = share_failure(communicator, local, static_cast<int>(mins[0]), deadline);
  return ballot;
}

void throw_if(const std::optional<Failure>& failure) {
  if (failure) throw Error(*failure);
}

std::optional<Difference> first_difference(Communicator& communicator, std::span<const std::uint64_t> values,
                                           Deadline deadline) {
  const auto ends = reduce_ends(communicator, values, deadline);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto smallest = ends[i];
    const auto largest = ~ends[values.size() + i];
    if (smallest == largest) continue;
    const auto ranks = find_differing_ranks(communicator, values[i], smallest, largest, deadline);
    return Difference{i, std::min(ranks[0], ranks[1]), std::max(ranks[0], ranks[1])};
  }
  return std::nullopt;
}

std::uint64_t agree_on_call(Communicator& communicator, const CallId& call, const std::optional<Failure>& local,
                            CallName name, Deadline deadline) {
  const std::uint64_t code = call.code;
  const auto failing = local ? static_cast<std::uint64_t>(communicator.rank()) : kNobody;
  const auto silent = local ? kNobody : static_cast<std::uint64_t>(communicator.rank());
  std::array<std::uint64_t, 7> mins{code,          ~code, call.argument_hash, ~call.argument_hash, failing,
                                    ~call.payload, silent};
  gather_calls(communicator, mins, local, deadline);

  const auto lowest_code = mins[0];
  const auto highest_code = ~mins[1];
  if (lowest_code != highest_code) {
    const auto ranks = find_differing_ranks(communicator, code, lowest_code, highest_code, deadline);
    throw Error(ErrorCode::bad_state,
                compose("ranks made different collective calls: rank {} is in {}, rank {} in {}; all ranks must make "
                        "the same collective calls in the same order",
                        ranks[0], name(static_cast<std::uint32_t>(lowest_code)), ranks[1],
                        name(static_cast<std::uint32_t>(highest_code))));
  }
  if (mins[4] != kNobody) {
    Failure failure = share_failure(communicator, local, static_cast<int>(mins[4]), deadline);
    // Another thread failed before this call. A rank that timed out may have waited for one that waited in turn.
    if (failure.code == ErrorCode::timeout && mins[6] != kNobody) {
      failure.message += compose("; rank {} did not time out: check that one first", mins[6]);
    }
    throw Error(std::move(failure));
  }
  if (mins[2] != ~mins[3]) {
    const auto ranks = find_differing_ranks(communicator, call.argument_hash, mins[2], ~mins[3], deadline);
    throw Error(ErrorCode::bad_state,
                compose("ranks {} and {} gave different arguments to {}; pass equal arguments on all ranks",
                        std::min(ranks[0], ranks[1]), std::max(ranks[0], ranks[1]), name(call.code)));
  }
  return ~mins[5];
}

}  // namespace kedge::comm

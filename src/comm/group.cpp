#include "comm/group.hpp"

#include <limits>

#include "base/text.hpp"

namespace kedge::comm {

void Group::reduce(std::span<std::uint64_t> values, Reduction reduction) const {
  communicator_->all_reduce(values, reduction, deadline());
}

/// The text for the others is made first, as there may be little memory.
Failure Group::leave(const std::exception& error) const {
  std::string why = compose("rank {} failed during a call: {}; start the job again", rank(), to_failure(error).message);
  communicator_->leave(why);
  return {ErrorCode::rank_failed, std::move(why)};  // the words name it, here as on the others
}

std::uint64_t Group::max(std::uint64_t mine) const {
  reduce(std::span(&mine, 1), Reduction::max);
  return mine;
}

std::uint64_t Group::min(std::uint64_t mine) const {
  reduce(std::span(&mine, 1), Reduction::min);
  return mine;
}

std::uint64_t Group::sum(std::uint64_t mine) const {
  reduce(std::span(&mine, 1), Reduction::sum);
  return mine;
}

std::optional<int> Group::lowest_rank_with(bool mine) const {
  constexpr auto kNone = std::numeric_limits<std::uint64_t>::max();
  const std::uint64_t lowest = min(mine ? static_cast<std::uint64_t>(rank()) : kNone);
  return lowest == kNone ? std::nullopt : std::optional(static_cast<int>(lowest));
}

std::uint64_t Group::length(std::uint64_t mine, int from) const {
  broadcast(mine, from);
  return mine;
}

void Group::broadcast(std::string& text, int from) const {
  text.resize(length(text.size(), from));
  if (!text.empty()) communicator_->broadcast(std::as_writable_bytes(std::span(text)), from, deadline());
}

std::string Group::text_of_lowest_rank(const std::optional<std::string>& mine) const {
  const std::optional<int> speaker = lowest_rank_with(mine.has_value());
  if (!speaker) return {};
  std::string text = mine.value_or("");
  broadcast(text, *speaker);
  return text;
}

}  // namespace kedge::comm

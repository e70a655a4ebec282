#include "comm/group.hpp"

#include <limits>

#include "base/text.hpp"

namespace kedge::comm {

void Group::reduce(std::span<std::uint64_t> values, Reduction reduction) const {
  communicator_->all_reduce(values, reduction, deadline());
}

/// The text for the others is made first, as there may be little memory.
Failure Group::leave_with_failure(const std::exception& error) const {
  std::string why = compose("rank {} failed during a call: {}; start the job again", rank(), to_failure(error).message);
  communicator_->leave(why);
  return {ErrorCode::rank_failed, std::move(why)};  // the words name it, here as on the others
}

std::uint64_t Group::max(std::uint64_t local) const {
  reduce(std::span(&local, 1), Reduction::max);
  return local;
}

std::uint64_t Group::min(std::uint64_t local) const {
  reduce(std::span(&local, 1), Reduction::min);
  return local;
}

std::uint64_t Group::sum(std::uint64_t local) const {
  reduce(std::span(&local, 1), Reduction::sum);
  return local;
}

std::optional<int> Group::lowest_rank_with(bool local) const {
  constexpr auto kNone = std::numeric_limits<std::uint64_t>::max();
  const std::uint64_t lowest = min(local ? static_cast<std::uint64_t>(rank()) : kNone);
  return lowest == kNone ? std::nullopt : std::optional(static_cast<int>(lowest));
}

std::uint64_t Group::broadcast_length(std::uint64_t local, int from) const {
  broadcast(local, from);
  return local;
}

void Group::broadcast(std::string& text, int from) const {
  text.resize(broadcast_length(text.size(), from));
  if (!text.empty()) communicator_->broadcast(std::as_writable_bytes(std::span(text)), from, deadline());
}

std::string Group::text_of_lowest_rank(const std::optional<std::string>& local) const {
  const std::optional<int> speaker = lowest_rank_with(local.has_value());
  if (!speaker) return {};
  std::string text = local.value_or("");
  broadcast(text, *speaker);
  return text;
}

}  // namespace kedge::comm

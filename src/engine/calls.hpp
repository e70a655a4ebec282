// The collective calls, as ranks name them to each other, and the names that applications give.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "comm/group.hpp"
#include "kedge/error.hpp"
#include "kedge/selection.hpp"

namespace kedge::engine {

enum class Call : std::uint32_t {
  start = 1,
  need_checkpoint,
  create,
  commit,
  abandon,
  open,
  close,
  finalize,
  wait,
  wait_for,
  pin,
  should_exit,
  finalize_for,
};

[[nodiscard]] std::string_view to_string(Call call) noexcept;

/// COLLECTIVE. Begins every collective call: throws bad_state on all ranks if they make different calls or give
/// different arguments, or the failure of the lowest rank that brought a `local` one. Returns the largest payload.
std::uint64_t begin_call(const comm::Group& group, Call call, std::uint64_t argument_hash,
                         const std::optional<Failure>& local = {}, std::uint64_t payload = 0);

/// Error in a tag, if any.
[[nodiscard]] std::optional<Failure> check_tag(std::string_view tag);

/// Error in the names of a Source, if any.
[[nodiscard]] std::optional<Failure> check_source(const Source& source);

/// FNV-1a, 64 bit (Fowler, Noll, Vo): the same in every process of a job.
[[nodiscard]] std::uint64_t hash_of(std::string_view text) noexcept;
[[nodiscard]] std::uint64_t hash_of(const Selection& selection, Newer newer) noexcept;

}  // namespace kedge::engine

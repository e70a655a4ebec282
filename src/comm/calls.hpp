// The collective calls of an engine, as ranks name them to each other.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "comm/group.hpp"
#include "kedge/error.hpp"

namespace kedge::comm {

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
  load_all,
  find_saved,
};

[[nodiscard]] std::string_view to_string(Call call) noexcept;

/// COLLECTIVE. Begins every collective call: throws bad_state on all ranks if they make different calls or give
/// different arguments, or the failure of the lowest rank that brought a `local` one. Returns the largest payload.
std::uint64_t begin_call(const Group& group, Call call, std::uint64_t argument_hash,
                         const std::optional<Failure>& local = {}, std::uint64_t payload = 0);

}  // namespace kedge::comm

// The collective calls of an engine, by which ranks check that they make the same one.
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
  verify_rest,  ///< of a restore of another number of ranks
};

[[nodiscard]] std::string_view to_string(Call call) noexcept;

/// COLLECTIVE. Begins a collective call and returns the largest payload. Throws on all ranks, as agree_on_call() does,
/// if they make different calls, any has a `local` failure, or arguments differ.
std::uint64_t begin_call(const Group& group, Call call, std::uint64_t argument_hash,
                         const std::optional<Failure>& local = {}, std::uint64_t payload = 0);

}  // namespace kedge::comm

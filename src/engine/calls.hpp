// The collective calls, as ranks name them to each other, and the names that applications give.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "kedge/engine.hpp"
#include "kedge/error.hpp"

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
  pin,
};

[[nodiscard]] std::string_view to_string(Call call) noexcept;

/// What is wrong with a tag, if anything.
[[nodiscard]] std::optional<Failure> check_tag(std::string_view tag);

/// FNV-1a, 64 bit (Fowler, Noll, Vo): the same in every process of a job.
[[nodiscard]] std::uint64_t hash_of(std::string_view text) noexcept;
[[nodiscard]] std::uint64_t hash_of(const Selection& selection, Newer newer) noexcept;

}  // namespace kedge::engine

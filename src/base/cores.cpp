#include "base/cores.hpp"

#include <sched.h>

#include "base/options_values.hpp"

namespace kedge {

std::optional<std::vector<unsigned>> parse_cores(std::string_view text) {
  std::vector<unsigned> cores;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    const std::string_view part = text.substr(0, comma);
    const std::size_t dash = part.find('-');
    const auto first = parse_number<unsigned>(part.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : parse_number<unsigned>(part.substr(dash + 1));
    if (!first || !last || *first > *last || *last >= CPU_SETSIZE) return std::nullopt;
    for (unsigned core = *first; core <= *last; ++core) cores.push_back(core);
    if (comma == std::string_view::npos) break;
    text.remove_prefix(comma + 1);
    if (text.empty()) return std::nullopt;
  }
  return cores;
}

bool bind_to_cores(const std::vector<unsigned>& cores) noexcept {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const unsigned core : cores) CPU_SET(core, &set);
  return ::sched_setaffinity(0, sizeof set, &set) == 0;
}

}  // namespace kedge

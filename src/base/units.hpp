// Numbers as people read them.
#pragma once

#include <cstdint>
#include <string>

namespace kedge {

/// "512 B", "1.5 MiB".
[[nodiscard]] std::string human_bytes(std::uint64_t size_bytes);

/// "850 us", "12.3 ms", "1.20 s", "3 min 20 s", "2 h 5 min".
[[nodiscard]] std::string human_seconds(double seconds);

}  // namespace kedge

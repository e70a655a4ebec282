// Huge pages for files in memory.
#pragma once

#include <cstdint>
#include <string_view>

namespace kedge::fs {

/// Whether the filesystem mounted from device `major`:`minor` gives huge pages to mappings that ask for them, and to
/// nothing else: a tmpfs mounted with huge=advise. `mountinfo` is the text of /proc/self/mountinfo.
[[nodiscard]] bool gives_huge_pages_on_advice(std::string_view mountinfo, unsigned major, unsigned minor);

/// Gives bytes [begin, end) of a file in memory huge pages where it gives them on advice; elsewhere does nothing. May
/// leave the file with a size of `end` and with holes: what is to be had for sure is reserved after it. Never fails.
void take_huge_pages(int descriptor, std::uint64_t begin, std::uint64_t end) noexcept;

}  // namespace kedge::fs

// Huge pages for files in memory-backed filesystems.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace kedge::fs {

/// Whether the filesystem mounted from device `major`:`minor` gives huge pages only to mappings that ask for them: a
/// tmpfs with huge=advise. `mountinfo` is the text of /proc/self/mountinfo.
[[nodiscard]] bool needs_huge_page_advice(std::string_view mountinfo, unsigned major, unsigned minor);

/// Whether huge pages cost less than small ones, if `taken_bytes` of them took `busy_s` of processor time and
/// `passed_s` in all. They cost more if the kernel has to move memory or to wait for them.
[[nodiscard]] bool are_huge_pages_cheaper(std::uint64_t taken_bytes, double busy_s, double passed_s) noexcept;

/// Maps bytes [begin, begin + size_bytes) of a file, shared, at an address that permits huge pages if `begin` is a
/// multiple of 2 MiB. Returns MAP_FAILED with errno, as mmap does.
[[nodiscard]] void* map_aligned(int descriptor, int protection, std::uint64_t begin, std::size_t size_bytes) noexcept;

/// Allocates huge pages of zeros for the hole [begin, end) of a file in memory, from the first whole page on, as long
/// as they cost less than small ones. Returns the end of them; `begin` if there are none. It may grow the file up to
/// `end` and leave holes, so reserve the range afterwards.
[[nodiscard]] std::uint64_t allocate_huge_pages(int descriptor, std::uint64_t begin, std::uint64_t end) noexcept;

}  // namespace kedge::fs

// Huge pages for files in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace kedge::fs {

/// Whether the filesystem mounted from device `major`:`minor` gives huge pages to mappings that ask for them, and to
/// nothing else: a tmpfs mounted with huge=advise. `mountinfo` is the text of /proc/self/mountinfo.
[[nodiscard]] bool gives_huge_pages_on_advice(std::string_view mountinfo, unsigned major, unsigned minor);

/// Whether huge pages cost less than small ones, after `taken_bytes` of them took `busy_s` of processor time and
/// `passed_s` in all. They do not where the kernel has to move other memory for them, or to wait.
[[nodiscard]] bool are_huge_pages_cheaper(std::uint64_t taken_bytes, double busy_s, double passed_s) noexcept;

/// mmap of bytes [begin, begin + size_bytes) of a file, shared, at an address at which its huge pages can be used as
/// such if `begin` is a multiple of 2 MiB. MAP_FAILED and errno as mmap.
[[nodiscard]] void* map_aligned(int descriptor, int protection, std::uint64_t begin, std::size_t size_bytes) noexcept;

/// Gives bytes [begin, end) of a file in memory, which must be a hole, storage in huge pages of zeros, from the first
/// whole one on, as far as they are to be had for less than small ones. Returns up to where they go; `begin` if there
/// are none. May leave the file larger and with holes, up to `end`: what is to be had for sure is reserved after it.
[[nodiscard]] std::uint64_t allocate_huge_pages(int descriptor, std::uint64_t begin, std::uint64_t end) noexcept;

}  // namespace kedge::fs

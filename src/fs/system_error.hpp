// Converts errno to kedge::Error, for the real file system and for the tests' model.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "kedge/error.hpp"

namespace kedge::fs {

/// ENOENT is `not_found`; shortage of space, quota, inodes or descriptors is `no_space`; the rest is `io`.
[[nodiscard]] ErrorCode error_code_of(int system_errno) noexcept;

/// Pure. Whether the error is about permissions or the path (EACCES, EPERM, ENOTDIR) rather than the storage.
[[nodiscard]] bool is_access_error(int system_errno) noexcept;

/// Throws Error "cannot <action>: <remedy>" with path and errno.
[[noreturn]] void throw_system_error(std::string_view action, const std::string& path, int system_errno);

/// Throws Error{corrupt}: [offset, offset + length) reaches beyond a file of `size_bytes`.
[[noreturn]] void throw_truncated(const std::string& path, std::uint64_t offset, std::uint64_t length,
                                  std::uint64_t size_bytes);

/// Throws unless [offset, offset + length) lies in a file of `size_bytes`, also if the sum overflows.
void require_within(const std::string& path, std::uint64_t offset, std::uint64_t length, std::uint64_t size_bytes);

}  // namespace kedge::fs

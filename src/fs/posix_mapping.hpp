// A memory-mapped file.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "fs/file_system.hpp"

namespace kedge::fs {

/// Takes over a mapping of the file's first `size_bytes`; `data` may be null if there are none.
[[nodiscard]] std::unique_ptr<Mapping> make_posix_mapping(std::byte* data, std::size_t size_bytes, Access access,
                                                          std::string path);

}  // namespace kedge::fs

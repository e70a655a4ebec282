// Is a file of a set or commit, before it is sealed, what it is meant to be?
#pragma once

#include <string>

#include "format/set_descriptor.hpp"
#include "fs/file_system.hpp"
#include "kedge/types.hpp"
#include "store/node_store.hpp"

namespace kedge::recovery {

/// Reads the whole file. Throws Error{corrupt} unless it is a container of this commit and logical rank, or parity of
/// this commit and protection, with all checksums right.
void check_file(fs::ByteAccess& bytes, store::FileKind kind, LogicalRank logical_rank, const store::FileKey& key,
                std::uint64_t size_bytes, const std::string& path);

/// What begins a parity file of this size. Throws Error{corrupt} unless it is parity of this commit and protection;
/// the parity itself is not read.
[[nodiscard]] format::SetDescriptor header_of_parity(fs::ByteAccess& bytes, const store::FileKey& key,
                                                     std::uint64_t size_bytes, const std::string& path);

}  // namespace kedge::recovery

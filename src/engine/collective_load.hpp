// Loads regions of the open checkpoint that any rank saved.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "arrays/load_all.hpp"
#include "arrays/saved_names.hpp"
#include "comm/group.hpp"
#include "engine/open_checkpoint.hpp"
#include "kedge/want.hpp"

namespace kedge::engine {

/// Local. Nothing, or why these cannot be asked for: memory that is not the host's or wanted twice, or a block that
/// does not lie in its array.
[[nodiscard]] std::optional<Failure> check(std::span<const Want> wants, device::Devices& devices);

/// COLLECTIVE. Fills the memory of all wants. `commit` is open as `checkpoint`. Throws the same Error on all ranks:
/// not_found, mismatch, corrupt, io; see arrays::load_all.
arrays::LoadCounts load_all(const comm::Group& group, const OpenCheckpoint& checkpoint, const CommitHead& commit,
                            std::span<const Want> wants, std::uint64_t buffer_bytes);

/// COLLECTIVE. How the ranks saved what has these names.
[[nodiscard]] std::vector<arrays::SavedName> find_saved(const comm::Group& group, const OpenCheckpoint& checkpoint,
                                                        std::span<const arrays::NameToFind> names);

}  // namespace kedge::engine

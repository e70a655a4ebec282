// Open files, mappings and locks of the faulty disk.
#pragma once

#include <memory>
#include <string>

#include "harness/faulty_state.hpp"

namespace kedge::faults {

/// Throws Error if the volume is planned to fail.
void require_working(const MountedVolume& mounted, bool writes, std::string_view action, const std::string& path);

/// Both with the disk's mutex held.
[[nodiscard]] std::unique_ptr<fs::File> make_file(std::shared_ptr<DiskState> state, int rank, InodePtr node,
                                                  std::string path, fs::Access access);
[[nodiscard]] std::unique_ptr<fs::Lock> make_lock(std::shared_ptr<DiskState> state, InodePtr node,
                                                  std::uint64_t serial);

}  // namespace kedge::faults

// How large writes reach stores that are not memory.
#pragma once

#include "base/log.hpp"
#include "comm/group.hpp"
#include "fs/file_system.hpp"
#include "kedge/options.hpp"
#include "store/store_space.hpp"

namespace kedge::start {

/// COLLECTIVE. By the option io; rank 0 measures in its store where that is to decide, all ranks do the same, and rank
/// 0 logs what was chosen and why. Where direct writes are unavailable the page cache is used, which is no error.
void choose_store_io(const comm::Group& group, fs::FileSystem& file_system, const Options& options,
                     store::StoreSpace& store, const Log& log);

}  // namespace kedge::start

// Chooses how large writes reach stores on disks.
#pragma once

#include "base/log.hpp"
#include "comm/group.hpp"
#include "fs/file_system.hpp"
#include "kedge/options.hpp"
#include "store/store_space.hpp"

namespace kedge::start {

/// COLLECTIVE. Applies the option io, equally on all ranks; if that needs a measurement, rank 0 makes it in its store.
/// Rank 0 logs the choice and the reason. If direct writes are unavailable the page cache is used, which is no error.
void choose_store_io(const comm::Group& group, fs::FileSystem& file_system, const Options& options,
                     store::StoreSpace& store, const Log& log);

}  // namespace kedge::start

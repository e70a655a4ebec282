// Verifies a file of the node-local store according to its kind.
#pragma once

#include "kedge/options.hpp"
#include "store/run_directory.hpp"
#include "store/scanned_file.hpp"

namespace kedge::store {

struct Inspection {
  ScannedFile scanned_file;
  bool has_failed = false;  ///< the file could not be opened or read
  bool is_foreign = false;  ///< the name belongs to something that is not this user's file: leave it alone
};

/// Reports problems as the file's damage and never throws Error. The file must be sealed for `run_id` and for the rank
/// in its name. Checks superblock, structure and index of containers, header and size of parity files, all bytes of
/// descriptors; with Verify::all, every byte of all. `bytes` must be the file's, or null to open the file here.
[[nodiscard]] Inspection inspect_file(const RunDirectory& directory, const FileName& name, const Id128& run_id,
                                      Verify verify, fs::ByteAccess* bytes = nullptr);

}  // namespace kedge::store

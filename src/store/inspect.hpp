// Verifies what lies in one file of the node-local store, by its kind.
#pragma once

#include "kedge/options.hpp"
#include "store/run_directory.hpp"
#include "store/scanned_file.hpp"

namespace kedge::store {

struct Inspection {
  ScannedFile held;
  bool failed = false;   ///< the system could not open or read it
  bool foreign = false;  ///< the name is taken by something that is no file of this user: leave it alone
};

/// Never throws Error: what is wrong with the file is its damage. Must be sealed for `run_id` and for the rank that
/// its name says. Containers: superblock, structure and index; parity: header and exact file size; with Verify::all
/// every byte of both. Descriptors are verified whole in any case. What is read is read through `bytes`, which must be
/// the file of this name; null: through the file, opened for this.
[[nodiscard]] Inspection inspect(const RunDirectory& directory, const FileName& name, const Id128& run_id,
                                 Verify verify, fs::ByteAccess* bytes = nullptr);

}  // namespace kedge::store

#include "store/inspect.hpp"

#include <memory>
#include <utility>

#include "base/attempt.hpp"
#include "store/verify_file.hpp"

namespace kedge::store {
namespace {

/// Takes over the verified content, except of another kind of file, or of a manifest that cannot be read.
void apply_verification(VerifiedFile&& found, ScannedFile& held) {
  if (found.fault == FileFault::kind) return;
  held.superblock = std::move(found.superblock);
  held.set_descriptor = std::move(found.set_descriptor);
  held.copied_commit = std::move(found.copied_commit);
  if (found.fault != FileFault::run) held.manifest = std::move(found.manifest);
}

}  // namespace

Inspection inspect_file(const RunDirectory& directory, const FileName& name, const Id128& run_id, Verify verify,
                        fs::ByteAccess* bytes) {
  Inspection result;
  ScannedFile& held = result.scanned_file;
  held.kind = name.kind;
  held.logical_rank = name.logical_rank;
  held.path = directory.path_of(name);
  fs::FileSystem& file_system = directory.file_system();
  const auto failure = attempt([&] {
    const auto status = file_system.status(held.path);
    if (!status) return;  // a missing file is not damage; recovery reports it
    if (status->owner != file_system.user() || status->kind != fs::FileStatus::Kind::file) {
      result.is_foreign = true;
      throw Error(Failure{ErrorCode::io, "not a regular file of this user; ignored", -1, held.path, 0});
    }
    held.size_bytes = status->size_bytes;
    if (held.size_bytes == 0) return;  // discarded after a failed checkpoint, or not begun
    std::unique_ptr<fs::File> file;
    if (bytes == nullptr) {
      // Opened for writing, since recovery writes to it: it would fail later with a read-only file.
      file = file_system.open(held.path, fs::Access::read_write);
      bytes = file.get();
    }
    ExpectedFile expected;
    expected.kind = held.kind;
    expected.run_id = run_id;
    expected.logical_rank = held.logical_rank;
    VerifiedFile found = verify_file(*bytes, held.size_bytes, held.path, expected, verify);
    const FileFault fault = found.fault;
    const std::string message = found.message;
    apply_verification(std::move(found), held);
    if (fault == FileFault::unsealed) return;
    if (fault != FileFault::none) throw Error(ErrorCode::corrupt, message);
    held.intact = true;
  });
  result.has_failed = failure && !result.is_foreign && failure->code == ErrorCode::io;
  if (failure) held.damage = held.path + ": " + failure->message;
  return result;
}

}  // namespace kedge::store

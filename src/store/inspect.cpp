#include "store/inspect.hpp"

#include <memory>
#include <utility>

#include "base/attempt.hpp"
#include "store/verify_file.hpp"

namespace kedge::store {
namespace {

/// The file's content counts, unless it is of another kind, or a manifest that says nothing here.
void apply(VerifiedFile&& found, ScannedFile& held) {
  if (found.fault == FileFault::kind) return;
  held.superblock = std::move(found.superblock);
  held.set = std::move(found.set);
  held.copied = std::move(found.copied);
  if (found.fault != FileFault::run) held.manifest = std::move(found.manifest);
}

}  // namespace

Inspection inspect(const RunDirectory& directory, const FileName& name, const Id128& run_id, Verify verify,
                   fs::ByteAccess* bytes) {
  Inspection result;
  ScannedFile& held = result.held;
  held.kind = name.kind;
  held.logical_rank = name.logical_rank;
  held.path = directory.path_of(name);
  fs::FileSystem& file_system = directory.file_system();
  const auto failure = attempt([&] {
    const auto status = file_system.status(held.path);
    if (!status) return;  // gone is not damage: whoever needs it reports where it should be
    if (status->owner != file_system.user() || status->kind != fs::FileStatus::Kind::file) {
      result.foreign = true;
      throw Error(Failure{ErrorCode::io, "not a regular file of this user; ignored", -1, held.path, 0});
    }
    held.size_bytes = status->size_bytes;
    if (held.size_bytes == 0) return;  // given up by a checkpoint that failed, or not yet begun
    std::unique_ptr<fs::File> file;
    if (bytes == nullptr) {
      // Opened for writing, as its user does: a file that can only be read would be chosen, and then fail.
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
    apply(std::move(found), held);
    if (fault == FileFault::unsealed) return;
    if (fault != FileFault::none) throw Error(ErrorCode::corrupt, message);
    held.intact = true;
  });
  result.failed = failure && !result.foreign && failure->code == ErrorCode::io;
  if (failure) held.damage = held.path + ": " + failure->message;
  return result;
}

}  // namespace kedge::store

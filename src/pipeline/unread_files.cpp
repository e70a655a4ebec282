#include "pipeline/unread_files.hpp"

#include "base/attempt.hpp"
#include "store/pin.hpp"
#include "store/verify_file.hpp"

namespace kedge::pipeline {
namespace {

/// Thrown to leave a file unfinished. Not a std::exception, since nothing has failed.
struct YieldRequested {};

/// Throws the file's damage, or Preempted.
void require_intact(store::StoreFile& file, const store::PinnableFile& offered, const CommitHead& commit,
                    const UnreadFilesReader::ShouldYield& should_yield) {
  file.require_present();
  store::ExpectedFile expected;
  expected.kind = offered.kind;
  expected.run_id = commit.run_id;
  if (offered.kind != store::FileKind::manifest) expected.logical_rank = offered.owner;
  expected.key = offered.key;
  const auto found = store::verify_file(file.bytes(), file.size_bytes(), file.path(), expected, Verify::all,
                                        [&](std::uint64_t /*bytes*/) {
                                          if (should_yield()) throw YieldRequested();
                                        });
  if (!found.is_intact()) refuse(ErrorCode::corrupt, found.message, file.path());
}

}  // namespace

/// Leaves out copies of manifests, which are written again when needed.
std::vector<store::PinnableFile> UnreadFilesReader::list_unread(const UnreadCommit& unread) {
  std::vector<store::PinnableFile> files;
  for (const store::PinnableFile& file : stored_files_.list_pinnable(unread.commit.id)) {
    const bool is_meant = (unread.protection_id.is_none() || file.key.protection_id == unread.protection_id) &&
                          !(unread.is_parity && file.kind == store::FileKind::container);
    if (is_meant && file.kind != store::FileKind::manifest && !read_files_.contains(file)) files.push_back(file);
  }
  return files;
}

std::uint64_t UnreadFilesReader::unread_bytes(const UnreadCommit& unread) {
  std::uint64_t bytes = 0;
  for (const store::PinnableFile& file : list_unread(unread)) {
    (void)attempt([&] { bytes += stored_files_.size_bytes(file.kind, file.owner, file.key); });
  }
  return bytes;
}

ReadResult UnreadFilesReader::read_commit(const UnreadCommit& unread, const ShouldYield& should_yield) {
  ReadResult result;
  for (const store::PinnableFile& file : list_unread(unread)) {
    if (should_yield()) {
      result.has_more = true;
      return result;
    }
    try {
      if (const auto failure = read_whole(file, unread.commit, should_yield)) {
        result.failures.push_back(*failure);
        result.has_damaged_container = result.has_damaged_container || file.kind == store::FileKind::container;
      }
    } catch (const YieldRequested&) {
      result.has_more = true;
      return result;
    }
    read_files_.insert(file);
  }
  return result;
}

/// A damaged container may lie beside its rebuilt one. Throws Preempted.
std::optional<Failure> UnreadFilesReader::read_whole(const store::PinnableFile& file, const CommitHead& commit,
                                                     const ShouldYield& should_yield) {
  std::optional<Failure> first;
  while (stored_files_.has_file(file.kind, file.owner, file.key)) {
    const auto failure = attempt([&] {
      const store::Pin pin(stored_files_, file.kind, file.owner, file.key);
      require_intact(*pin, file, commit, should_yield);
    });
    if (!failure) return std::nullopt;
    if (!stored_files_.has_file(file.kind, file.owner, file.key)) return std::nullopt;  // retired and reused
    if (!first) first = failure;
    (void)attempt([&] { stored_files_.reject_file(file); });
  }
  return first;
}

}  // namespace kedge::pipeline

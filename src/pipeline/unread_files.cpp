#include "pipeline/unread_files.hpp"

#include "base/attempt.hpp"
#include "store/pin.hpp"
#include "store/verify_file.hpp"

namespace kedge::pipeline {
namespace {

/// Thrown to leave a file unfinished. Not a std::exception, since nothing has failed.
struct Preempted {};

/// Throws the file's damage, or Preempted.
void require_intact(store::StoreFile& file, const store::PinnableFile& offered, const CommitHead& commit,
                    const UnreadFiles::ShouldYield& should_yield) {
  file.require_present();
  store::ExpectedFile expected;
  expected.kind = offered.kind;
  expected.run_id = commit.run_id;
  if (offered.kind != store::FileKind::manifest) expected.logical_rank = offered.whose;
  expected.key = offered.key;
  const auto found = store::verify_file(file.bytes(), file.size_bytes(), file.path(), expected, Verify::all,
                                        [&](std::uint64_t /*bytes*/) {
                                          if (should_yield()) throw Preempted();
                                        });
  if (!found.is_intact()) refuse(ErrorCode::corrupt, found.message, file.path());
}

}  // namespace

/// Leaves out copies of manifests, which are written again when needed.
std::vector<store::PinnableFile> UnreadFiles::files_left(const UnreadCommit& what) {
  std::vector<store::PinnableFile> files;
  for (const store::PinnableFile& file : stored_.offered(what.commit.id)) {
    const bool is_meant = what.protection_id.is_none() || file.key.protection_id == what.protection_id;
    if (is_meant && file.kind != store::FileKind::manifest && !read_.contains(file)) files.push_back(file);
  }
  return files;
}

std::uint64_t UnreadFiles::bytes_left(const UnreadCommit& what) {
  std::uint64_t bytes = 0;
  for (const store::PinnableFile& file : files_left(what)) {
    (void)attempt([&] { bytes += stored_.size_bytes(file.kind, file.whose, file.key); });
  }
  return bytes;
}

ReadFiles UnreadFiles::read(const UnreadCommit& what, const ShouldYield& should_yield) {
  ReadFiles result;
  for (const store::PinnableFile& file : files_left(what)) {
    if (should_yield()) {
      result.some_left = true;
      return result;
    }
    try {
      if (const auto failure = read_whole(file, what.commit, should_yield)) {
        result.damaged.push_back(*failure);
        result.containers = result.containers || file.kind == store::FileKind::container;
      }
    } catch (const Preempted&) {
      result.some_left = true;
      return result;
    }
    read_.insert(file);
  }
  return result;
}

/// A damaged container may lie beside its rebuilt one. Throws Preempted.
std::optional<Failure> UnreadFiles::read_whole(const store::PinnableFile& file, const CommitHead& commit,
                                               const ShouldYield& should_yield) {
  std::optional<Failure> first;
  while (stored_.has(file.kind, file.whose, file.key)) {
    const auto failure = attempt([&] {
      const store::Pin pin(stored_, file.kind, file.whose, file.key);
      require_intact(*pin, file, commit, should_yield);
    });
    if (!failure) return std::nullopt;
    if (!stored_.has(file.kind, file.whose, file.key)) return std::nullopt;  // retired and reused
    if (!first) first = failure;
    (void)attempt([&] { stored_.reject(file); });
  }
  return first;
}

}  // namespace kedge::pipeline

#include "store/sealed_commits.hpp"

#include <algorithm>
#include <optional>

#include "base/attempt.hpp"
#include "store/file_name.hpp"
#include "store/verify_file.hpp"

namespace kedge::store {
namespace {

std::optional<CommitHead> commit_in(fs::FileSystem& file_system, const std::string& path, const FileName& name,
                                    const Id128& run_id) {
  std::optional<CommitHead> commit;
  (void)attempt([&] {
    const auto file = file_system.open(path, fs::Access::read);
    ExpectedFile expected;
    expected.kind = name.kind;
    expected.run_id = run_id;
    expected.logical_rank = name.logical_rank;
    const VerifiedFile found = verify_file(*file, file->status().size_bytes, path, expected, Verify::headers);
    if (!found.is_intact()) return;
    if (found.superblock) commit = found.superblock->commit;
    else commit = found.copied_commit;
  });
  return commit;
}

}  // namespace

std::vector<CommitHead> sealed_commits(fs::FileSystem& file_system, const std::string& directory, const Id128& run_id) {
  std::vector<CommitHead> commits;
  for (const std::string& file : file_system.list(directory)) {
    const auto name = parse_file_name(file);
    if (!name || (name->kind != FileKind::container && name->kind != FileKind::parity)) continue;
    const auto commit = commit_in(file_system, fs::join(directory, file), *name, run_id);
    const auto is_it = [&](const CommitHead& other) { return other.id == commit->id; };
    if (commit && std::ranges::none_of(commits, is_it)) commits.push_back(*commit);
  }
  std::ranges::sort(commits, is_newer);
  return commits;
}

}  // namespace kedge::store

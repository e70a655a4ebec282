// The rules of share/doc/architecture.md as functions over text, so that each can be shown a breach of it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace kedge::structure {

/// A file of the project; `path` is relative to its root, with forward slashes.
struct Source {
  std::string path;
  std::string text;
};

/// One #include; `quoted` for "...", otherwise <...>.
struct Include {
  std::string name;
  bool quoted = false;
};

inline constexpr std::size_t kLongestFile = 400;  // lines

[[nodiscard]] std::vector<Include> includes_of(std::string_view text);

/// The room that a file below src/ lives in ("format", "comm/mpi"); empty for files elsewhere.
[[nodiscard]] std::string room_of(std::string_view path);

/// The faults of the includes of a file, one sentence each: floors, rooms of outside libraries, what public
/// headers and examples may show.
[[nodiscard]] std::vector<std::string> include_problems(const Source& source);

/// The faults of the modules that a Fortran file uses: MPI's is used by one file alone, so that the rest can do
/// without it; examples use what users have.
[[nodiscard]] std::vector<std::string> use_problems(const Source& source);

[[nodiscard]] std::vector<std::string> length_problems(const Source& source);

/// Names at the top of the project that do not belong there.
[[nodiscard]] std::vector<std::string> top_level_problems(const std::vector<std::string>& names);

/// Words of the vocabulary that appear in none of the sources, in whatever spelling code gives them:
/// "commit id" is found in commit_id, CommitId and commit-id.
[[nodiscard]] std::vector<std::string> missing_words(const std::vector<std::string>& words,
                                                     const std::vector<Source>& sources);

}  // namespace kedge::structure

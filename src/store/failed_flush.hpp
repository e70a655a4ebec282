// The record of a failed flush in rank 0's store, which kedge ls shows, also after the job has ended.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "fs/file_system.hpp"
#include "kedge/types.hpp"

namespace kedge::store {

/// The newest commit whose flush failed.
struct FailedFlush {
  Id128 commit_id;
  std::uint64_t generation = 0;
  Tag tag;
  std::int64_t time_ns = 0;  ///< time of the failure, since 1970
  std::uint64_t tries = 1;
  std::string reason;  ///< one line of text
  bool operator==(const FailedFlush&) const = default;
};

/// Pure. The record's content.
[[nodiscard]] std::string to_text(const FailedFlush& failed);
/// Pure. Parses the record; nothing if it is invalid.
[[nodiscard]] std::optional<FailedFlush> parse_failed_flush(const std::string& text);

/// Local, reads only. The record of the store in `directory`; nothing if there is no valid one. Throws Error{io}.
[[nodiscard]] std::optional<FailedFlush> read_failed_flush(fs::FileSystem& file_system, const std::string& directory);

}  // namespace kedge::store

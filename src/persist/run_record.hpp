// Who a run is: its record run.json on the prefix, and the copy of it that each start keeps.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_forward.hpp"
#include "fs/file_system.hpp"
#include "kedge/error.hpp"
#include "kedge/types.hpp"

namespace kedge::persist {

class RunStart;

/// What run.json says.
struct RunRecord {
  Id128 run_id = {};
  std::string prefix = {};  ///< canonical path of the prefix at the last start
  /// Where it lay before, newest first. Prefixes that it was copied from are not here.
  std::vector<std::string> former_prefixes = {};
  /// Drawn where the run began, and anew for each copy of the prefix: the stores are this place's.
  Id128 prefix_id = {};
  std::optional<std::string> fingerprint = {};  ///< what the run's commits depend on
  /// Rank 0's when a commit was last made or opened, or at the first start; empty if unknown.
  std::string store = {};
  /// Runs of this name that start = fresh, or the adoption of another one's stores, left behind: what stores still have
  /// of them is known, and not wanted. Newest first.
  std::vector<Id128> given_up = {};
  bool operator==(const RunRecord&) const = default;
};

/// A record as it was found.
struct FoundRecord {
  std::optional<RunRecord> record;
  bool damaged = false;               ///< there is a run.json, and it is damaged
  std::optional<Failure> unreadable;  ///< why it could not be read, if that is how it is damaged
};

/// Pure. Where the record of the run is whose records lie in `directory`.
[[nodiscard]] std::string run_record_path(std::string_view directory);
/// Pure. The text of run.json for a run of this name.
[[nodiscard]] std::string run_record_text(const std::string& run, const RunRecord& record);

/// Local, reads only: the record in `directory`. Throws Error{io}.
[[nodiscard]] FoundRecord read_run_record(fs::FileSystem& file_system, const std::string& directory);
/// Local, reads only: the record as the newest start that began kept it; nothing if none can be read. Throws Error{io}.
[[nodiscard]] std::optional<RunRecord> read_record_of_newest_start(fs::FileSystem& file_system,
                                                                   const std::string& directory);

/// Local. Replaces run.json; on stable storage when it returns. Throws Error{io | no_space}.
void write_run_record(const RunStart& start, const RunRecord& record);
/// Local. Puts rank 0's store into the record. Throws Error{busy} if a later start has begun; io, no_space.
void record_store(const RunStart& start, const std::string& store);

/// Nothing if there is no text of this name.
[[nodiscard]] std::optional<std::string> text_in(const Json& content, const char* key);

/// JSON is UTF-8, and a path need not be: then it is an object with its bytes in hexadecimal.
[[nodiscard]] Json bytes_json(const std::string& bytes);

/// Nothing if it is neither.
[[nodiscard]] std::optional<std::string> bytes_of(const Json& value);

/// Empty if there are none.
[[nodiscard]] std::string bytes_in(const Json& content, const char* key);

}  // namespace kedge::persist

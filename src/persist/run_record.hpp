// The identity of a run: its record run.json on the prefix, and the copy that each start keeps.
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

/// Content of run.json.
struct RunRecord {
  Id128 run_id = {};
  std::string prefix = {};  ///< canonical path of the prefix at the last start
  /// Earlier paths of the prefix, newest first; without those of prefixes that it was copied from.
  std::vector<std::string> former_prefixes = {};
  /// Drawn when the run began, and anew for each copy of the prefix: stores belong to one of them.
  Id128 prefix_id = {};
  std::optional<std::string> fingerprint = {};  ///< describes what the run's commits depend on
  /// Rank 0's store when a commit was last made or opened, or at the first start; empty if unknown.
  std::string store = {};
  /// Runs of this name that were left behind by start = fresh, or by adopting another one's stores; what stores still
  /// have of them stops no start. Newest first.
  std::vector<Id128> given_up_runs = {};
  bool operator==(const RunRecord&) const = default;
};

/// A record as it was found.
struct FoundRecord {
  std::optional<RunRecord> record;
  bool is_damaged = false;            ///< there is a run.json, and it is damaged
  std::optional<Failure> unreadable;  ///< why it could not be read, if that is the damage
};

/// Returns the path of the run's record, given the directory of its records. Pure.
[[nodiscard]] std::string run_record_path(std::string_view directory);
/// Returns the text of run.json for a run of this name. Pure.
[[nodiscard]] std::string run_record_text(const std::string& run, const RunRecord& record);

/// Reads the record in `directory`. Throws Error{io}. Local.
[[nodiscard]] FoundRecord read_run_record(fs::FileSystem& file_system, const std::string& directory);
/// Reads the copy of the record that the newest start kept; nothing if none can be read. Throws Error{io}. Local.
[[nodiscard]] std::optional<RunRecord> read_record_of_newest_start(fs::FileSystem& file_system,
                                                                   const std::string& directory);

/// Replaces run.json; on stable storage when it returns. Throws Error{io | no_space}. Local.
void write_run_record(const RunStart& start, const RunRecord& record);
/// Records rank 0's store. Throws Error{busy} if a later start has begun; io, no_space. Local.
void record_store(const RunStart& start, const std::string& store);

/// Returns the text of this name; nothing if there is none.
[[nodiscard]] std::optional<std::string> find_text(const Json& content, const char* key);

/// Returns text, or an object with the bytes in hexadecimal if they are not UTF-8, which a path need not be.
[[nodiscard]] Json bytes_to_json(const std::string& bytes);

/// Returns the bytes that bytes_to_json() was given; nothing for other values.
[[nodiscard]] std::optional<std::string> bytes_from_json(const Json& value);

/// Returns the bytes of this name; empty if there are none.
[[nodiscard]] std::string find_bytes(const Json& content, const char* key);

}  // namespace kedge::persist

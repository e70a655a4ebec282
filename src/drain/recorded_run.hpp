// Finds a run by its records on the prefix, without starting it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "drain/placement.hpp"
#include "fs/file_system.hpp"
#include "kedge/error.hpp"
#include "kedge/options.hpp"
#include "persist/run_record.hpp"
#include "persist/tags.hpp"
#include "store/store_record.hpp"

namespace kedge::drain {

struct RecordedRun {
  std::string prefix;  ///< canonical
  std::string name;
  persist::RunRecord record;
  std::string newest;               ///< newest checkpoint on the prefix, for messages; may be empty
  PrefixState there;                ///< what the prefix has
  std::uint64_t newest_start = 0;   ///< of a job
  bool newest_start_ended = false;  ///< the newest start has certainly ended
  std::optional<persist::TagEntry> newest_entry;
};

/// Pure. Returns a failure if a job that started after the container was made may be running: it would be overtaken.
[[nodiscard]] std::optional<Failure> check_no_later_start(const RecordedRun& run, std::uint64_t incarnation);

/// Local, reads only. Why the newest commit on the prefix is incomplete, judging by names and sizes; empty if it is
/// complete. `options` say whose files are trusted.
[[nodiscard]] std::string describe_damage(const std::shared_ptr<fs::FileSystem>& file_system, const RecordedRun& run,
                                          const Options& options);

/// A commit's name for messages.
[[nodiscard]] std::string commit_text(std::string_view tag, std::uint64_t generation);

/// Local, reads only. The runs with checkpoints on this prefix or in its stores: those of the components of the job
/// with this name; all if it is empty. Throws Error{not_found} if there is no such prefix.
[[nodiscard]] std::vector<std::string> recorded_runs(fs::FileSystem& file_system, const std::string& prefix,
                                                     const std::string& job);

/// Local, reads only. The run with this name on this prefix; if empty, the only one, or that of a job without a run
/// name. Throws Error{not_found} if there is no such prefix or run, mismatch with the names if there are several.
[[nodiscard]] RecordedRun find_recorded_run(fs::FileSystem& file_system, const std::string& prefix,
                                            const std::string& name);

/// Local, reads only. The run that owned the store at its last start. Throws not_found.
[[nodiscard]] RecordedRun find_recorded_run_of(fs::FileSystem& file_system, const store::StoreRecord& store);

}  // namespace kedge::drain

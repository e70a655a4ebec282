// A run as its prefix knows it, found without starting it.
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
#include "persist/tag_entry.hpp"
#include "store/store_record.hpp"

namespace kedge::drain {

struct RecordedRun {
  std::string prefix;  ///< canonical
  std::string name;
  persist::RunRecord record;
  std::string newest;               ///< checkpoint on the prefix, for people; empty if there is none
  PrefixState there;                ///< what the prefix has
  std::uint64_t newest_start = 0;   ///< of a job
  bool newest_start_ended = false;  ///< the newest start is known not to be at work
  std::optional<persist::TagEntry> newest_entry;
};

/// Pure. Nothing if no job can be at work that began after the container was made: such a job would be overtaken.
[[nodiscard]] std::optional<Failure> check_no_later_start(const RecordedRun& run, std::uint64_t incarnation);

/// Local, reads only. Why the newest commit on the prefix is not whole there, as far as names and sizes tell; empty if
/// it is. `options` say whose files are trusted.
[[nodiscard]] std::string describe_damage(const std::shared_ptr<fs::FileSystem>& file_system, const RecordedRun& run,
                                          const Options& options);

/// A commit, for people.
[[nodiscard]] std::string commit_text(std::string_view tag, std::uint64_t generation);

/// Local, reads only. The names of the runs on this prefix that have checkpoints there or in stores: of those that
/// belong to a job of this name, which parts of it have runs of their own; empty: of all. Throws Error{not_found} if
/// there is no such prefix.
[[nodiscard]] std::vector<std::string> recorded_runs(fs::FileSystem& file_system, const std::string& prefix,
                                                     const std::string& job);

/// Local, reads only. The run of this name on this prefix; empty: the only one, or that of a job without a name. Throws
/// Error{not_found} if there is no such prefix or run, mismatch that names them if there are several.
[[nodiscard]] RecordedRun find_recorded_run(fs::FileSystem& file_system, const std::string& prefix,
                                            const std::string& name);

/// Local, reads only. The run that a store belongs to, where that lay at its last start. Throws not_found.
[[nodiscard]] RecordedRun find_recorded_run_of(fs::FileSystem& file_system, const store::StoreRecord& store);

}  // namespace kedge::drain

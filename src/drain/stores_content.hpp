// Containers in the stores of this machine, as a job that ended left them.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "drain/placement.hpp"
#include "kedge/options.hpp"
#include "persist/run_record.hpp"
#include "start/environment.hpp"

namespace kedge::drain {

struct StoresContent {
  std::vector<StoredContainer> containers;
  std::map<std::uint64_t, Tag> outputs;    ///< their tags, by generation
  std::vector<std::string> stores;         ///< directories of this run
  std::vector<std::uint64_t> dead_starts;  ///< starts that died here: they left locks which nobody holds
  std::string used_by;                     ///< who works with one of them; empty: nobody
};

/// Local, reads only. Containers in one directory of a store; a file that cannot be read is left out. Throws Error{io}.
[[nodiscard]] std::vector<StoredContainer> containers_in(const std::shared_ptr<fs::FileSystem>& file_system,
                                                         const std::string& directory, const Id128& run_id);

/// Local, reads only. Tags of the outputs in one directory of a store, by generation; a file that cannot be read is
/// left out. Throws Error{io}.
[[nodiscard]] std::map<std::uint64_t, Tag> outputs_in(const std::shared_ptr<fs::FileSystem>& file_system,
                                                      const std::string& directory, const Id128& run_id);

/// Pure. Tags of the outputs of these generations, each once, the oldest first.
[[nodiscard]] std::vector<Tag> tags_of(const std::map<std::uint64_t, Tag>& outputs,
                                       const std::set<std::uint64_t>& generations);

/// Local, reads only. Survivors of the run of this name and record, in the stores that a process here sees: those of
/// its own node alone, unless `options` simulate nodes. A file that cannot be read is left out. Throws Error{io}.
[[nodiscard]] StoresContent find_stores_content(const start::Environment& environment, const Options& options,
                                                std::string_view run, const persist::RunRecord& record);

/// Local. Calls `look` until nobody uses what it looks at (its `used_by`), and returns its result: processes of a job
/// that was killed may take a moment to end. After a few seconds, returns what is there then. The time of `look` itself
/// counts: it does not mean that this process was stopped.
template <class Look>
[[nodiscard]] auto wait_until_free(Clock& clock, Look&& look) {
  constexpr double kPatience_s = 3;
  constexpr std::chrono::milliseconds kPause{100};
  const double give_up_at = clock.seconds() + kPatience_s;
  auto found = look();
  while (!found.used_by.empty() && clock.seconds() < give_up_at) {
    clock.sleep_for(kPause);
    found = look();
  }
  return found;
}

/// Pure. The name of this process's node, for people.
[[nodiscard]] std::string node_of(const start::Environment& environment);

/// Pure. Whether `name` is `pattern` with something in place of {node}.
[[nodiscard]] bool matches_node_pattern(std::string_view name, std::string_view pattern);

}  // namespace kedge::drain

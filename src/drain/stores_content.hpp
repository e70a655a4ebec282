// Containers in this machine's stores that an ended job left behind.
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
  std::map<std::uint64_t, Tag> outputs;    ///< of outputs, by generation
  std::vector<std::string> stores;         ///< of this run
  std::vector<std::uint64_t> dead_starts;  ///< that left a free lock here
  std::string used_by;                     ///< holder of a store's lock; empty if none
};

/// Local, reads only. Containers in one store directory; skips unreadable files. Throws Error{io}.
[[nodiscard]] std::vector<StoredContainer> containers_in(const std::shared_ptr<fs::FileSystem>& file_system,
                                                         const std::string& directory, const Id128& run_id);

/// Local, reads only. Tags of outputs in one store directory, by generation; skips unreadable files. Throws Error{io}.
[[nodiscard]] std::map<std::uint64_t, Tag> outputs_in(const std::shared_ptr<fs::FileSystem>& file_system,
                                                      const std::string& directory, const Id128& run_id);

/// Pure. Tags of the outputs with these generations, each once, oldest first.
[[nodiscard]] std::vector<Tag> tags_of(const std::map<std::uint64_t, Tag>& outputs,
                                       const std::set<std::uint64_t>& generations);

/// Local, reads only. Survivors of the run of this name and record, in the stores that a process here sees: those of
/// its own node alone, unless `options` simulate nodes. A file that cannot be read is left out. Throws Error{io}.
[[nodiscard]] StoresContent find_stores_content(const start::Environment& environment, const Options& options,
                                                std::string_view run, const persist::RunRecord& record);

/// Local. Calls `look` until its result's `used_by` is empty, because processes of a killed job may take a moment
/// to end; after a few seconds, returns the last result. The time that `look` takes counts.
template <class Inspect>
[[nodiscard]] auto wait_until_free(Clock& clock, Inspect&& look) {
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

/// Pure. Whether `name` matches `pattern`, in which {node} stands for any text.
[[nodiscard]] bool matches_node_pattern(std::string_view name, std::string_view pattern);

}  // namespace kedge::drain

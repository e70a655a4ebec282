#include "persist/run_removal.hpp"

#include "base/text.hpp"
#include "kedge/error.hpp"
#include "persist/posix_prefix.hpp"
#include "persist/run_record.hpp"
#include "persist/run_start.hpp"
#include "persist/tags.hpp"

namespace kedge::persist {
namespace {

constexpr int kTriesMax = 5;

}  // namespace

RunOnPrefix find_on_prefix(fs::FileSystem& file_system, const std::string& prefix, const std::string& run) {
  RunOnPrefix found;
  const TagList list = list_tags(file_system, prefix);
  for (const TagEntry& entry : list.entries) {
    const auto status = file_system.status(fs::join(prefix, entry.directory));
    if (entry.run == run && status && status->owner == file_system.user()) found.entries.push_back(entry);
  }
  for (const UnusableTag& one : list.unusable) {
    if (one.committed) found.unreadable.push_back(one.directory);
  }
  return found;
}

RunOnPrefix remove_run(const std::shared_ptr<fs::FileSystem>& file_system, const std::string& prefix,
                       const std::string& run) {
  RunStart start({file_system, prefix, run});
  (void)start.take();
  start.begin(read_run_record(*file_system, start.directory().path()).record.value_or(RunRecord{}));
  RunOnPrefix removed;
  const PrefixStorage storage = posix_prefix_storage(file_system, prefix, {}, &start);
  // Again until there is none: a job may have been about to publish when it was overtaken.
  for (int tries = 0; tries < kTriesMax; ++tries) {
    const RunOnPrefix found = find_on_prefix(*file_system, prefix, run);
    for (const TagEntry& entry : found.entries) storage.remover->remove(entry);
    removed.entries.insert(removed.entries.end(), found.entries.begin(), found.entries.end());
    removed.unreadable = found.unreadable;
    if (tries > 0 && found.entries.empty()) break;
    if (const std::vector<std::string> problems = storage.remover->sweep({}); !problems.empty()) {
      throw Error(Failure{ErrorCode::io, compose("not all of it could be removed; try again: {}", problems.front()), -1,
                          prefix, 0});
    }
  }
  start.remove_records();
  return removed;
}

}  // namespace kedge::persist

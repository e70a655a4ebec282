#include "store/job_record.hpp"

#include <optional>

#include "base/attempt.hpp"
#include "base/text.hpp"
#include "store/file_name.hpp"

namespace kedge::store {

void record_job(fs::FileSystem& file_system, const std::string& directory, const std::string& job) {
  const std::string own = job.empty() ? "" : compose("{}{}", kJobPrefix, job);
  bool is_there = false;
  for (const std::string& name : file_system.list(directory)) {
    if (!name.starts_with(kJobPrefix)) continue;
    if (name == own) is_there = true;
    else file_system.remove(fs::join(directory, name));
  }
  // Another rank of the node may have created it.
  if (!own.empty() && !is_there) (void)file_system.create(fs::join(directory, own));
}

std::string recorded_job(const std::vector<std::string>& names) {
  std::optional<std::string> found;
  for (const std::string& name : names) {
    if (!name.starts_with(kJobPrefix)) continue;
    if (found) return {};
    found = name.substr(kJobPrefix.size());
  }
  return found.value_or("");
}

}  // namespace kedge::store

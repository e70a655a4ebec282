#include "start/original.hpp"

#include <cerrno>

#include "base/attempt.hpp"
#include "fs/system_error.hpp"
#include "kedge/error.hpp"
#include "persist/run_record.hpp"

namespace kedge::start {

OriginalPrefix find_original_prefix(fs::FileSystem& file_system, const std::string& directory, const Id128& run_id) {
  auto original = OriginalPrefix::gone;
  const auto failure = attempt([&] {
    const auto found = persist::read_run_record(file_system, directory);
    auto record = found.record;
    if (!record && file_system.status(directory)) record = persist::read_record_of_newest_start(file_system, directory);
    if (!record && found.unreadable) throw Error(*found.unreadable);
    if (record ? record->run_id == run_id : found.damaged) original = OriginalPrefix::there;
  });
  if (!failure) return original;
  if (!fs::is_access_error(failure->system_errno)) throw Error(*failure);
  return failure->system_errno == ENOTDIR ? OriginalPrefix::gone : OriginalPrefix::denied;
}

}  // namespace kedge::start

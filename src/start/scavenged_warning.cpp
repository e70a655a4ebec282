#include "start/scavenged_warning.hpp"

#include <algorithm>
#include <vector>

#include "base/attempt.hpp"
#include "base/shell_word.hpp"
#include "base/text.hpp"
#include "persist/prefix_runs.hpp"

namespace kedge::start {

void warn_of_scavenged_stores(fs::FileSystem& file_system, const persist::RunRecords& records, const Log& log) {
  const std::string copies = persist::scavenge_directory(records.directory());
  std::vector<std::string> names;
  (void)attempt([&] { names = file_system.list(copies); });
  if (std::ranges::none_of(names, [](const std::string& name) { return name.starts_with(persist::kScavengedNode); }))
    return;
  log.warning(
      compose("stores of an earlier start were copied to {} (kedge scavenge) and have not been flushed: they may have "
              "newer checkpoints than this start finds. To use them, end this job and run kedge scavenge --finish {} "
              "--run {}",
              copies, shell_word(records.prefix()), records.run()));
}

}  // namespace kedge::start

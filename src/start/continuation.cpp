#include "start/continuation.hpp"

#include <algorithm>
#include <memory>
#include <mutex>
#include <vector>

#include "base/attempt.hpp"
#include "base/random.hpp"
#include "base/text.hpp"
#include "persist/prefix_runs.hpp"
#include "start/launch.hpp"

namespace kedge::start {
namespace {

/// Starts of this process whose engines were finalized, or destroyed without an error.
struct FinishedStarts {
  std::mutex mutex;
  std::vector<Id128> starts;
};

/// Never destroyed: an engine may be, after it.
FinishedStarts& finished_starts() {
  static auto* const all = std::make_unique<FinishedStarts>().release();
  return *all;
}

bool has_finished(const Id128& start) {
  FinishedStarts& all = finished_starts();
  const std::lock_guard guard(all.mutex);
  return std::ranges::find(all.starts, start) != all.starts.end();
}

/// Names of the run and of its records in messages.
struct Named {
  const std::string& run;
  const std::string& directory;
};

class ContinuationCheck {
 public:
  ContinuationCheck(const Named& named, const persist::PreviousStart& before, const persist::LaunchInfo& now)
      : named_(named), then_(before.launch_info), now_(now) {}

  void require() const {
    const bool one_launch = !now_.launch_id.empty() && now_.launch_id == then_.launch_id;
    // Ranks may have another order in each engine of the whole launch.
    const bool is_whole = now_.rank_count == now_.process_count || then_.rank_count == then_.process_count;
    const bool other_part =
        !is_whole && now_.first_process >= 0 && then_.first_process >= 0 && now_.first_process != then_.first_process;
    const bool as_large = now_.process_count > 0 && now_.process_count == then_.process_count;
    if (one_launch && other_part) refuse_part("this launch");
    if (one_launch && has_finished(then_.id)) refuse_result();
    if (!now_.array_task.empty() && !then_.array_task.empty() && now_.array_task != then_.array_task) refuse_task();
    // Named parts may lie elsewhere in each launch.
    if (other_part && as_large && now_.communicator.empty())
      refuse_part("this launch, or of one of the same size before");
  }

 private:
  [[noreturn]] void throw_mismatch(const std::string& words) const {
    refuse(ErrorCode::mismatch,
           compose("{}. To continue from its checkpoints anyway, set open.chained (KEDGE_OPEN_CHAINED=1); to start "
                   "over once it has ended, set KEDGE_START=fresh for one start",
                   words),
           named_.directory);
  }

  [[noreturn]] void refuse_part(std::string_view launch) const {
    throw_mismatch(
        compose("run '{}' was started by another part of {} (its rank 0 is process {} of the launch, this part's is "
                "process {}), and this part would restart from that part's state. Give each part its own run: name its "
                "communicator (MPI_Comm_set_name) or set run (KEDGE_RUN)",
                named_.run, launch, then_.first_process, now_.first_process));
  }

  [[noreturn]] void refuse_result() const {
    throw_mismatch(
        compose("run '{}' has already finished in this process, or its engine was destroyed without finalize, so "
                "another engine would restart from its final state. Give this computation its own run (option run, "
                "KEDGE_RUN) or its own prefix",
                named_.run));
  }

  [[noreturn]] void refuse_task() const {
    throw_mismatch(compose(
        "run '{}' belongs to task {} of a job array; this is task {}, which would restart from that task's state. "
        "Give each task its own run (in a Slurm script: export KEDGE_RUN=task-$SLURM_ARRAY_TASK_ID) or its own "
        "directory; for tasks that each continue from the one before (--array=1-10%1), set open.chained",
        named_.run, then_.array_task, now_.array_task));
  }

  Named named_;
  const persist::LaunchInfo& then_;
  const persist::LaunchInfo& now_;
};

}  // namespace

persist::LaunchInfo launch_info_of(const Environment& environment, const Communicator& communicator) {
  persist::LaunchInfo launch_info =
      find_launch_info(environment.find_variable, environment.processes, communicator.size());
  if (const std::string own = communicator.launch(); !own.empty()) launch_info.launch_id = own;
  launch_info.communicator = persist::explicit_name(communicator.name());
  launch_info.id = random_id();
  return launch_info;
}

void require_may_continue(const Options& options, const persist::RunStart& start,
                          const persist::LaunchInfo& launch_info) {
  if (options.open.chained || options.start == StartMode::fresh) return;
  if (const auto before = start.previous_start()) {
    ContinuationCheck({start.directory().run(), start.directory().path()}, *before, launch_info).require();
  }
}

void inherit_array_task(const persist::RunStart& start, persist::LaunchInfo& launch_info) {
  if (!launch_info.array_task.empty()) return;
  const persist::RecordDirectory& records = start.directory();
  if (const auto before = persist::newest_start(records.file_system(), records.path(), launch_info.launch_id))
    launch_info.array_task = before->launch_info.array_task;
}

void mark_finished(const Id128& start_id) {
  FinishedStarts& all = finished_starts();
  const std::lock_guard guard(all.mutex);
  all.starts.push_back(start_id);
}

}  // namespace kedge::start

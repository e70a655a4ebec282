#include "engine/succession.hpp"

#include <algorithm>
#include <mutex>
#include <vector>

#include "base/random.hpp"
#include "base/refuse.hpp"
#include "base/text.hpp"
#include "engine/launch.hpp"
#include "persist/prefix_runs.hpp"

namespace kedge::engine {
namespace {

constexpr std::string_view kChained = "set open.chained (KEDGE_OPEN_CHAINED=1)";

/// Starts of this process that nobody finalized.
struct LeftInOrder {
  std::mutex mutex;
  std::vector<Id128> starts;
};

LeftInOrder& left_in_order() {
  static LeftInOrder all;
  return all;
}

bool was_left_in_order(const Id128& start) {
  LeftInOrder& all = left_in_order();
  const std::lock_guard guard(all.mutex);
  return std::ranges::find(all.starts, start) != all.starts.end();
}

class Succession {
 public:
  Succession(const persist::RunRecords& records, const persist::StartBefore& before, const persist::Starter& now)
      : records_(records), before_(before), then_(before.starter), now_(now) {}

  void require() const {
    const bool one_launch = !now_.launch.empty() && now_.launch == then_.launch;
    const bool known = now_.first >= 0 && then_.first >= 0;
    const bool other_part = known && now_.first != then_.first;
    if (one_launch && other_part) refuse_part("this launch");
    if (one_launch && (before_.ended || was_left_in_order(then_.id))) refuse_result();
    if (!now_.array_task.empty() && !then_.array_task.empty() && now_.array_task != then_.array_task) refuse_task();
    // Named parts may lie elsewhere in each launch.
    if (other_part && now_.launched == then_.launched && now_.communicator.empty()) refuse_part("the last launch");
  }

 private:
  [[noreturn]] void refuse_part(std::string_view launch) const {
    refuse(
        ErrorCode::mismatch,
        compose("run '{}' belongs to another part of {}, which begins with process {} of {}; this part begins with "
                "process {}, and would take up its state. Give each part a run of its own: name its communicator "
                "(MPI_Comm_set_name), or set Options::run (KEDGE_RUN) to a name for each. If it is to go on from the "
                "other's checkpoints, {}",
                records_.run(), launch, then_.first, then_.launched, now_.first, kChained),
        records_.directory());
  }

  [[noreturn]] void refuse_result() const {
    refuse(
        ErrorCode::mismatch,
        compose("run '{}' has come to its end in this launch already: another engine would take up the state that it "
                "ended with. Give this computation a run of its own, by Options::run (KEDGE_RUN), or another "
                "directory. If it is to go on from there, {}",
                records_.run(), kChained),
        records_.directory());
  }

  [[noreturn]] void refuse_task() const {
    refuse(
        ErrorCode::mismatch,
        compose("run '{}' belongs to task {} of a job array, and this is task {}, which would take up its state. Give "
                "each task a run of its own (in a Slurm script: export KEDGE_RUN=task-$SLURM_ARRAY_TASK_ID), or a "
                "directory of its own. Where each task goes on from the one before (--array=1-10%1), {}",
                records_.run(), then_.array_task, now_.array_task, kChained),
        records_.directory());
  }

  const persist::RunRecords& records_;
  const persist::StartBefore& before_;
  const persist::Starter& then_;
  const persist::Starter& now_;
};

}  // namespace

persist::Starter starter_of(const Setup& setup, const Communicator& communicator) {
  const Environment& environment = setup.environment;
  persist::Starter starter =
      find_starter(environment.variable, environment.process, environment.parent, communicator.size());
  if (const std::string own = communicator.launch(); !own.empty()) starter.launch = own;
  starter.communicator = persist::given_name(communicator.name());
  starter.id = random_id();
  return starter;
}

void require_succession(const Setup& setup, const persist::RunRecords& records, const persist::Starter& starter) {
  const Options::Open& open = setup.options.open;
  if (setup.environment.is_drain || open.chained || open.fresh) return;
  if (const auto before = records.start_before()) Succession(records, *before, starter).require();
}

void note_left_in_order(const persist::RunRecords& records) {
  if (records.starter().launch.empty()) return;
  LeftInOrder& all = left_in_order();
  const std::lock_guard guard(all.mutex);
  all.starts.push_back(records.starter().id);
}

}  // namespace kedge::engine

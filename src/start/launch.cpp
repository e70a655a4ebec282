#include "start/launch.hpp"

#include <array>
#include <string_view>

#include "base/options_values.hpp"
#include "base/text.hpp"

namespace kedge::start {
namespace {

using Variable = std::function<std::optional<std::string>(const std::string& name)>;

/// Variables of one launcher that tell its launches, and the processes in them, apart.
struct Launcher {
  std::string_view launch;
  std::string_view rank;
  std::string_view size;
};

// Each has the same value in all processes of a launch, on all nodes, and another one in every other launch.
constexpr std::array kLaunchers{
    Launcher{"OMPI_MCA_orte_precondition_transports", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
    Launcher{"PALS_APID", "PALS_RANKID", "PALS_SIZE"},
    Launcher{"ALPS_APP_ID", "ALPS_APP_PE", ""},
    Launcher{"FLUX_JOB_ID", "FLUX_TASK_RANK", "FLUX_JOB_SIZE"},
};

constexpr std::array<std::string_view, 5> kArrayTasks{"SLURM_ARRAY_TASK_ID", "PBS_ARRAY_INDEX", "PBS_ARRAYID",
                                                      "LSB_JOBINDEX", "SGE_TASK_ID"};

std::string text_of(const Variable& variable, std::string_view name) {
  return name.empty() ? std::string() : variable(std::string(name)).value_or("");
}

int number_of(const Variable& variable, std::string_view name) {
  const auto number = parse_number<int>(text_of(variable, name));
  return number && *number >= 0 ? *number : -1;
}

/// A number, other than the 0 by which LSF says that a job is no array's.
std::string array_task(const Variable& variable) {
  for (const std::string_view name : kArrayTasks) {
    const int task = number_of(variable, name);
    if (task > 0 || (task == 0 && name != "LSB_JOBINDEX")) return std::to_string(task);
  }
  return {};
}

struct LaunchPosition {
  std::string launch;
  int rank = -1;
  int size = -1;
};

/// The batch system's job, and how often that was started again: some launchers count from the beginning in each.
std::string job_of(const Variable& variable) {
  for (const std::string_view name : {"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "COBALT_JOBID"}) {
    const std::string job = text_of(variable, name);
    if (job.empty()) continue;
    const std::string count = text_of(variable, "SLURM_RESTART_COUNT");
    return compose(", job {}{}", job, count.empty() ? std::string() : compose(" restart {}", count));
  }
  return {};
}

int first_known(int one, int other) { return one >= 0 ? one : other; }

LaunchPosition find_launch_position(const Variable& variable, const ProcessIds& processes) {
  const int pmi_rank = number_of(variable, "PMI_RANK");
  const int pmi_size = number_of(variable, "PMI_SIZE");
  // MPICH's launcher has no name for a launch, and other launchers' variables pass through it. On one node, its daemon
  // is above all.
  if (!processes.daemon.empty() && pmi_rank >= 0) return {compose("process {}", processes.daemon), pmi_rank, pmi_size};
  for (const Launcher& one : kLaunchers) {
    const std::string launch = text_of(variable, one.launch);
    const int rank = number_of(variable, one.rank);
    if (launch.empty() || rank < 0) continue;  // some set the variable by hand, for srun
    return {compose("{} {}", one.launch, launch), rank, number_of(variable, one.size)};
  }
  const int slurm_size = number_of(variable, "SLURM_STEP_NUM_TASKS");
  // In a shell that srun started, each program has the same step.
  const bool is_shell = !text_of(variable, "SLURM_PTY_PORT").empty();
  const std::string space = text_of(variable, "PMIX_NAMESPACE");
  if (!space.empty() && !is_shell) {
    return {compose("PMIX_NAMESPACE {}", space), number_of(variable, "PMIX_RANK"),
            first_known(number_of(variable, "OMPI_COMM_WORLD_SIZE"), slurm_size)};
  }
  const std::string step = text_of(variable, "SLURM_STEP_ID");
  if (!step.empty() && !is_shell && number_of(variable, "SLURM_PROCID") >= 0) {
    // Where srun started a launcher's daemons, Slurm counts these, and PMI the ranks.
    return {compose("Slurm step {}", step), first_known(pmi_rank, number_of(variable, "SLURM_PROCID")),
            first_known(pmi_size, slurm_size)};
  }
  if (pmi_rank >= 0) return {compose("process {}", processes.parent), pmi_rank, pmi_size};
  return {compose("process {}", processes.own), -1, -1};
}

}  // namespace

std::string batch_job(const Variable& variable) {
  // In an instance of Flux, the job that administrators know is the one that encloses all others.
  for (const std::string_view name :
       {"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "COBALT_JOBID", "FLUX_ENCLOSING_ID", "FLUX_JOB_ID"}) {
    const std::string job = text_of(variable, name);
    if (job.empty()) continue;
    const int element = name == "LSB_JOBID" ? number_of(variable, "LSB_JOBINDEX") : 0;
    return job_name(element > 0 ? compose("{}[{}]", job, element) : job);
  }
  return {};
}

persist::LaunchInfo find_launch_info(const Variable& variable, const ProcessIds& processes, int ranks) {
  LaunchPosition place = find_launch_position(variable, processes);
  // torchrun's workers are started again by the agent that started them, which may have been started by srun.
  if (const std::string run = text_of(variable, "TORCHELASTIC_RUN_ID"); !run.empty()) {
    if (place.rank < 0) place.launch = compose("process {}", processes.parent);
    place.launch += compose(", torchrun {} {}:{}, restart {}", run, text_of(variable, "MASTER_ADDR"),
                            text_of(variable, "MASTER_PORT"), text_of(variable, "TORCHELASTIC_RESTART_COUNT"));
    place.rank = number_of(variable, "RANK");
    place.size = number_of(variable, "WORLD_SIZE");
  }
  place.launch += job_of(variable);
  if (processes.own.empty()) place.launch.clear();
  return {place.launch, place.rank, place.size, ranks, array_task(variable)};
}

}  // namespace kedge::start

#include "engine/launch.hpp"

#include <array>
#include <charconv>
#include <string_view>
#include <system_error>

#include "base/text.hpp"

namespace kedge::engine {
namespace {

using Variable = std::function<std::optional<std::string>(const std::string& name)>;

/// Of one launcher: what its launches, and in them its processes, are told apart by.
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
  const std::string text = text_of(variable, name);
  int number = -1;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, number);
  return parsed.ec == std::errc{} && parsed.ptr == end && number >= 0 ? number : -1;
}

/// A number, other than the 0 by which LSF says that a job is no array's.
std::string array_task(const Variable& variable) {
  for (const std::string_view name : kArrayTasks) {
    const int task = number_of(variable, name);
    if (task > 0 || (task == 0 && name != "LSB_JOBINDEX")) return std::to_string(task);
  }
  return {};
}

struct Place {
  std::string launch;
  int rank = -1;
  int size = -1;
};

/// A job that Slurm started again has the same job and step.
std::string restarts(const Variable& variable) {
  const std::string count = text_of(variable, "SLURM_RESTART_COUNT");
  return count.empty() ? std::string() : compose(", restart {}", count);
}

Place by_launcher(const Variable& variable, const std::string& process, const std::string& parent) {
  for (const Launcher& one : kLaunchers) {
    const std::string launch = text_of(variable, one.launch);
    if (launch.empty()) continue;
    return {compose("{} {}", one.launch, launch), number_of(variable, one.rank), number_of(variable, one.size)};
  }
  const std::string space = text_of(variable, "PMIX_NAMESPACE");
  if (!space.empty()) {
    return {compose("PMIX_NAMESPACE {}{}", space, restarts(variable)), number_of(variable, "PMIX_RANK"),
            number_of(variable, "SLURM_STEP_NUM_TASKS")};
  }
  const std::string step = text_of(variable, "SLURM_STEP_ID");
  if (!step.empty() && number_of(variable, "SLURM_PROCID") >= 0) {
    return {compose("Slurm step {}.{}{}", text_of(variable, "SLURM_JOB_ID"), step, restarts(variable)),
            number_of(variable, "SLURM_PROCID"), number_of(variable, "SLURM_STEP_NUM_TASKS")};
  }
  // MPICH's launcher has no name for a launch: on one node, its daemon is the parent of all.
  if (number_of(variable, "PMI_RANK") >= 0) {
    return {compose("process {}", parent), number_of(variable, "PMI_RANK"), number_of(variable, "PMI_SIZE")};
  }
  return {compose("process {}", process), -1, -1};
}

}  // namespace

persist::Starter find_starter(const Variable& variable, const std::string& process, const std::string& parent,
                              int ranks) {
  Place place = by_launcher(variable, process, parent);
  // torchrun's workers are started again by the agent that started them, which may have been started by srun.
  if (const std::string run = text_of(variable, "TORCHELASTIC_RUN_ID"); !run.empty()) {
    if (place.rank < 0) place.launch = compose("process {}", parent);
    place.launch += compose(", torchrun {} {}:{}, restart {}", run, text_of(variable, "MASTER_ADDR"),
                            text_of(variable, "MASTER_PORT"), text_of(variable, "TORCHELASTIC_RESTART_COUNT"));
    place.rank = number_of(variable, "RANK");
    place.size = number_of(variable, "WORLD_SIZE");
  }
  if (process.empty()) place.launch.clear();
  return {place.launch, place.rank, place.size, ranks, array_task(variable)};
}

}  // namespace kedge::engine

#include "comm/mpi/mpi_launcher.hpp"

#include <charconv>

#include "base/text.hpp"

namespace kedge::comm {
namespace {

/// 0: not set, or no number.
int number(const std::optional<std::string>& value) {
  int result = 0;
  if (value) std::from_chars(value->data(), value->data() + value->size(), result);
  return result;
}

}  // namespace

std::optional<std::string> launcher_warning(
    int world_size, const std::function<std::optional<std::string>(const std::string&)>& variable,
    std::string_view library) {
  if (world_size != 1) return std::nullopt;
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}) {
    if (!variable(name)) continue;
    const int started = number(variable(name));
    if (started <= 1) return std::nullopt;  // whatever started the launcher itself
    return compose(
        "the launcher started {} processes ({}), and {} sees only this one: each is a job of its own. Start "
        "the program with the launcher of the MPI that it was built with",
        started, name, library);
  }
  // Set by srun for what it starts; SLURM_NTASKS is there in every script too.
  const int tasks = number(variable("SLURM_STEP_NUM_TASKS"));
  if (tasks <= 1) return std::nullopt;
  return compose(
      "srun started {} tasks (SLURM_STEP_NUM_TASKS), and {} sees only this one: each is a job of its own. Give "
      "srun the --mpi that this MPI was built for (srun --mpi=list shows them), or use this MPI's own launcher",
      tasks, library);
}

}  // namespace kedge::comm

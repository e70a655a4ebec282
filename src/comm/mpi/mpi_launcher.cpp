#include "comm/mpi/mpi_launcher.hpp"

#include <charconv>
#include <sstream>

#include "base/text.hpp"

namespace kedge::comm {
namespace {

/// 0: not set, or no number.
int parse_rank_number(const std::optional<std::string>& value) {
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
    const int started = parse_rank_number(variable(name));
    if (started <= 1) return std::nullopt;  // whatever started the launcher itself
    return compose(
        "the launcher started {} processes ({}), but {} sees only this one, so each runs as a separate job with one "
        "rank; start the program with the launcher of the MPI that it was built with",
        started, name, library);
  }
  // Set by srun for what it starts; SLURM_NTASKS is there in every script too.
  const int tasks = parse_rank_number(variable("SLURM_STEP_NUM_TASKS"));
  if (tasks <= 1) return std::nullopt;
  return compose(
      "srun started {} tasks (SLURM_STEP_NUM_TASKS), but {} sees only this one, so each runs as a separate job with "
      "one rank; give srun the --mpi that this MPI was built for (srun --mpi=list shows them), or use this MPI's own "
      "launcher",
      tasks, library);
}

/// Open MPI's launcher says how many processes each program got; their ranks follow each other.
std::string ranks_of_other_programs(int rank, int world_size,
                                    const std::function<std::optional<std::string>(const std::string&)>& variable) {
  std::istringstream counts(variable("OMPI_APP_CTX_NUM_PROCS").value_or(""));
  std::string others;
  int begin = 0;
  for (int count = 0; counts >> count && count > 0 && count <= world_size - begin; begin += count) {
    const int last = begin + count - 1;
    if (begin <= rank && rank <= last) continue;
    others += others.empty() ? "" : ", ";
    others += count == 1 ? compose("rank {}", begin) : compose("ranks {} to {}", begin, last);
  }
  return begin == world_size ? others : std::string();
}

}  // namespace kedge::comm

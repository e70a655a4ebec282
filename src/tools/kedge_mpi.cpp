// kedge-mpi: the program that `kedge drain` launches on a job's nodes.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>
#include <vector>

#include "base/options_load.hpp"
#include "base/text.hpp"
#include "comm/group.hpp"
#include "comm/mpi/mpi_link.hpp"
#include "drain/drain.hpp"
#include "drain/recorded_run.hpp"
#include "kedge/exit_status.hpp"
#include "kedge/mpi.hpp"
#include "start/environment.hpp"
#include "tools/outcome.hpp"

namespace kedge::tools {
namespace {

/// This process's options; the vote on options reports errors in them on all processes.
Options options_of(const std::vector<std::string>& settings) {
  Options options;
  try {
    for (const std::string& one : settings) {
      const std::size_t at = one.find('=');
      set_option(options, one.substr(0, at), at == std::string::npos ? "" : one.substr(at + 1));
    }
  } catch (const Error& error) {
    options.load_failure = error.failure();
  }
  return options;
}

struct Asked {
  std::vector<std::string> settings;
  bool overtakes = false;
  bool all_runs = false;
};

/// COLLECTIVE. Process 0's list of runs: those of the job in `options`, or all.
std::vector<std::string> runs_to_drain(const comm::Group& processes, const Options& options) {
  comm::throw_if(processes.vote(options.load_failure));
  std::vector<std::string> runs;
  processes.run_on_all_ranks([&] {
    if (!processes.is_root()) return;
    runs = drain::recorded_runs(*fs::posix_file_system(), options.persistent.path, options.run);
    if (runs.empty())
      throw Error(
          Failure{ErrorCode::not_found, "no run on this prefix has checkpoints", -1, options.persistent.path, 0});
  });
  auto number = runs.size();
  processes.broadcast(number);
  runs.resize(number);
  for (std::string& run : runs) processes.broadcast(run);
  return runs;
}

/// COLLECTIVE. Drains one run after the other, whatever fails. Runs that ended normally may have no store.
Outcome drain_each(const comm::Group& processes, Options options, bool overtakes) {
  Outcome outcome = Outcome::ok;
  bool any_seen = false;
  for (const std::string& run : runs_to_drain(processes, options)) {
    options.run = run;
    const auto say = [&](const std::string& words) {
      if (processes.is_root()) print(printable(compose("{}: {}", run, words)) + "\n");
    };
    try {
      comm::MpiLink link(MPI_COMM_WORLD);
      say(drain::drain(processes, processes.size() == 1 ? nullptr : &link, options, start::Environment::system(),
                       overtakes));
      any_seen = true;
    } catch (const Error& error) {
      if (comm::ends_communication(error.code())) throw;
      if (error.code() == ErrorCode::not_found) {
        say(error.failure().message);
        continue;
      }
      any_seen = true;
      if (processes.is_root()) outcome = std::max(outcome, report_failed_attempt(error.failure()));
    }
  }
  return any_seen ? outcome : Outcome::not_checked;
}

/// COLLECTIVE. Throws what ends communication.
Outcome drain_all(const Asked& asked) {
  const auto& [settings, overtakes, all_runs] = asked;
  const Options options = options_of(settings);
  const comm::Group processes(kedge::mpi(MPI_COMM_WORLD), comm::Group::Seconds(options.comm.timeout_s));
  try {
    processes.communicator().connect(processes.deadline());
    if (all_runs) return drain_each(processes, options, overtakes);
    comm::MpiLink link(MPI_COMM_WORLD);
    const std::string words = drain::drain(processes, processes.size() == 1 ? nullptr : &link, options,
                                           start::Environment::system(), overtakes);
    if (processes.is_root()) print(printable(words) + "\n");
    return Outcome::ok;
  } catch (const Error& error) {
    if (comm::ends_communication(error.code())) throw;
    return processes.is_root() ? report_failed_attempt(error.failure()) : Outcome::ok;
  }
}

}  // namespace
}  // namespace kedge::tools

int main(int count, char** words) {
  CLI::App program{"The processes that kedge drain starts; see kedge drain --help.", "kedge-mpi"};
  program.require_subcommand(1);
  kedge::tools::Asked asked;
  CLI::App* drain =
      program.add_subcommand("drain", "Flush what a job left in the stores of the nodes that this runs on");
  drain->add_option("--set", asked.settings, "An option of the job, as section.key=value")
      ->type_name("OPTION")
      ->allow_extra_args(false);
  drain->add_flag("--overtake", asked.overtakes, "Even if a job of the run may be at work elsewhere");
  drain->add_flag("--all-runs", asked.all_runs, "Every run of the job, or, if it has no name, of the prefix");
  CLI11_PARSE(program, count, words);
  auto outcome = kedge::tools::Outcome::not_checked;
  const int failed = kedge::mpi_main(count, words, [&] { outcome = kedge::tools::drain_all(asked); });
  if (failed == kedge::kExitTryAgain) outcome = kedge::tools::Outcome::try_again;
  else if (failed != 0) outcome = kedge::tools::Outcome::not_checked;
  return static_cast<int>(outcome);
}

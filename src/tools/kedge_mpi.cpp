// kedge-mpi: what `kedge drain` has a launcher start on the nodes of a job.
#include <CLI/CLI.hpp>
#include <exception>
#include <string>
#include <vector>

#include "base/option_by_name.hpp"
#include "base/printable.hpp"
#include "base/text.hpp"
#include "comm/group.hpp"
#include "comm/mpi/mpi_link.hpp"
#include "drain/drain.hpp"
#include "engine/environment.hpp"
#include "kedge/mpi.hpp"
#include "tools/outcome.hpp"

namespace kedge::tools {
namespace {

/// The same on every process: what is wrong with one of them is told by the vote on options.
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

/// COLLECTIVE. Throws what ends communication.
Outcome drain_all(const std::vector<std::string>& settings, bool overtakes) {
  const Options options = options_of(settings);
  const comm::Group processes(kedge::mpi(MPI_COMM_WORLD), comm::Group::Seconds(options.comm.timeout_s));
  try {
    processes.communicator().connect(processes.deadline());
    comm::MpiLink link(MPI_COMM_WORLD);
    const std::string words = drain::drain(processes, processes.size() == 1 ? nullptr : &link, options,
                                           engine::Environment::system(), overtakes);
    if (processes.is_root()) print(printable(words) + "\n");
    return Outcome::ok;
  } catch (const Error& error) {
    if (comm::ends_communication(error.code())) throw;
    return processes.is_root() ? explain(error.failure()) : Outcome::ok;
  }
}

}  // namespace
}  // namespace kedge::tools

int main(int count, char** words) {
  CLI::App program{"The processes that kedge drain starts; see kedge drain --help.", "kedge-mpi"};
  program.require_subcommand(1);
  std::vector<std::string> settings;
  bool overtakes = false;
  CLI::App* drain =
      program.add_subcommand("drain", "Flush what a job left in the stores of the nodes that this runs on");
  drain->add_option("--set", settings, "An option of the job, as section.key=value")
      ->type_name("OPTION")
      ->allow_extra_args(false);
  drain->add_flag("--overtake", overtakes, "Even if a job of the run may be at work elsewhere");
  CLI11_PARSE(program, count, words);
  auto outcome = kedge::tools::Outcome::cannot_look;
  const int failed = kedge::mpi_main(count, words, [&] { outcome = kedge::tools::drain_all(settings, overtakes); });
  return static_cast<int>(failed != 0 ? kedge::tools::Outcome::cannot_look : outcome);
}

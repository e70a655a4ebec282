// kedge-scavenge: the program behind `kedge scavenge`. It flushes and therefore needs HDF5, which the command does not.
#include <CLI/CLI.hpp>
#include <exception>
#include <string>
#include <vector>

#include "base/options_load.hpp"
#include "base/text.hpp"
#include "drain/scavenge.hpp"
#include "start/environment.hpp"
#include "tools/node_stores.hpp"
#include "tools/outcome.hpp"
#include "tools/scavenge_arguments.hpp"

namespace kedge::tools {
namespace {

/// Scavenges each store, whatever fails.
Outcome scavenge(const ScavengeArguments& arguments) {
  Options options = load_options(process_environment(), ".").options;
  if (options.load_failure) return explain(*options.load_failure);
  const auto environment = start::Environment::system();
  if (!arguments.run.empty()) options.run = arguments.run;
  if (!arguments.finish.empty()) {
    options.persistent.path = arguments.finish;
    try {
      print(printable(drain::finish_scavenge(options, environment, arguments.overtakes)) + "\n");
      return Outcome::ok;
    } catch (const Error& error) {
      return report_failed_attempt(error.failure());
    }
  }
  std::vector<std::string> stores = arguments.stores;
  if (stores.empty()) {
    for (const Store& one : find_stores(*environment.file_system)) stores.push_back(one.directory);
  }
  Outcome outcome = Outcome::ok;
  if (stores.empty()) print("you have no stores on this node\n");
  for (const std::string& path : stores) {
    try {
      const Store store = open_store(*environment.file_system, path);
      if (!arguments.job.empty() && store.content.job != job_name(arguments.job)) continue;
      print(printable(store.directory) + ": " +
            printable(drain::scavenge_store(store.directory, options, environment)) + "\n");
    } catch (const Error& error) {
      outcome = std::max(outcome, report_failed_attempt(error.failure()));
    }
  }
  return outcome;
}

}  // namespace
}  // namespace kedge::tools

int main(int count, char** words) {
  using kedge::tools::Outcome;
  CLI::App program{"What kedge scavenge starts; see kedge scavenge --help.", "kedge-scavenge"};
  kedge::tools::ScavengeArguments arguments;
  arguments.add_to(program);
  CLI11_PARSE(program, count, words);
  try {
    return static_cast<int>(kedge::tools::scavenge(arguments));
  } catch (const std::exception& error) {
    kedge::tools::print_error(kedge::compose("unexpected: {}", error.what()));
    return static_cast<int>(Outcome::not_checked);
  }
}

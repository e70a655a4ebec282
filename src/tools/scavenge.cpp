// kedge scavenge [STORE...]: copies a job's checkpoints from this node's stores to the prefix.
#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "tools/outcome.hpp"
#include "tools/scavenge_arguments.hpp"
#include "tools/start_program.hpp"

namespace kedge::tools {

Command add_scavenge(CLI::App& program) {
  auto arguments = std::make_shared<ScavengeArguments>();
  CLI::App* parser = program.add_subcommand("scavenge", "Copy what a job left in this node's stores to its prefix");
  arguments->add_to(*parser);
  parser->footer(
      "For a prolog or epilog that runs on each node after a job has ended; needs no launcher. Copies commits that are "
      "newer than the prefix's to PREFIX/.kedge. The call that copies the last container flushes the checkpoint; if a "
      "node is lost, --finish flushes it and rebuilds that node's containers. The stores are not changed.\nExit "
      "status: 0, 1 if nothing can be recovered, 75 if another attempt may succeed (a store is in use, the "
      "prefix is full), else 2.");
  return {parser, [arguments]() -> Outcome {
            std::vector<std::string> words = {path_of_program("kedge-scavenge", "install Kedge again")};
            for (std::string& word : arguments->words()) words.push_back(std::move(word));
            exec_program(std::move(words), "start it; install Kedge again");
          }};
}

}  // namespace kedge::tools

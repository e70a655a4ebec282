// kedge scavenge [STORE...]: copies to the prefix what a job left in this node's stores.
#include <memory>
#include <string>
#include <vector>

#include "tools/outcome.hpp"
#include "tools/start_program.hpp"

namespace kedge::tools {
namespace {

struct Arguments {
  std::vector<std::string> stores;
  std::string finish;
  std::string run;
  bool overtakes = false;
};

Outcome scavenge(const Arguments& arguments) {
  std::vector<std::string> words = {beside("kedge-scavenge", "install Kedge again")};
  if (!arguments.finish.empty()) words.insert(words.end(), {"--finish", arguments.finish});
  if (!arguments.run.empty()) words.insert(words.end(), {"--run", arguments.run});
  if (arguments.overtakes) words.emplace_back("--overtake");
  words.insert(words.end(), arguments.stores.begin(), arguments.stores.end());
  become(std::move(words), "start it; install Kedge again");
}

}  // namespace

Command add_scavenge(CLI::App& program) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* parser = program.add_subcommand("scavenge", "Copy what a job left in this node's stores to its prefix");
  parser->add_option("STORE", arguments->stores, "Stores on this node; default: all of yours in the default places");
  parser->add_option("--finish", arguments->finish, "Flush what has been copied so far, treating missing nodes as lost")
      ->type_name("PREFIX");
  parser->add_option("--run", arguments->run, "With --finish: the run, if the prefix has several")->type_name("NAME");
  parser->add_flag(
      "--overtake", arguments->overtakes,
      "With --finish: even if a later start of the job may be at work; its flushes then fail, and it ends");
  parser->footer(
      "For a prolog or epilog, which calls it on each node of a job that has ended; needs no launcher. What is newer "
      "than "
      "the checkpoints on the prefix is copied below PREFIX/.kedge. The call that brings the last container flushes "
      "the "
      "checkpoint; if a node is lost, --finish does, and rebuilds what it had. The stores stay as they are.\n"
      "Exit status: 0, 1 if nothing can be recovered, else 2.");
  return {parser, [arguments] { return scavenge(*arguments); }};
}

}  // namespace kedge::tools

#include "tools/scavenge_arguments.hpp"

#include <CLI/CLI.hpp>

namespace kedge::tools {

void ScavengeArguments::add_to(CLI::App& parser) {
  parser.add_option("STORE", stores, "Stores on this node; default: all of yours in the default places");
  parser.add_option("--finish", finish, "Flush what has been copied so far, treating missing nodes as lost")
      ->type_name("PREFIX");
  parser.add_option("--run", run, "With --finish: the run, if the prefix has several")->type_name("NAME");
  parser.add_option("--job", job, "Only stores that this job of the batch system used last")->type_name("ID");
  parser.add_flag("--overtake", overtakes,
                  "With --finish: even if a later start of the job may be at work; its flushes then fail, and it ends");
}

std::vector<std::string> ScavengeArguments::words() const {
  std::vector<std::string> words;
  if (!finish.empty()) words.insert(words.end(), {"--finish", finish});
  if (!run.empty()) words.insert(words.end(), {"--run", run});
  if (!job.empty()) words.insert(words.end(), {"--job", job});
  if (overtakes) words.emplace_back("--overtake");
  words.insert(words.end(), stores.begin(), stores.end());
  return words;
}

}  // namespace kedge::tools

// kedge drain [PREFIX]: starts processes on the job's nodes that flush the content of their stores.
// kedge scavenge [STORE...]: copies a job's checkpoints from this node's stores to the prefix.
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <array>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/options_fields.hpp"
#include "base/options_load.hpp"
#include "base/options_values.hpp"
#include "base/text.hpp"
#include "fs/file_system.hpp"
#include "fs/system_error.hpp"
#include "kedge/error.hpp"
#include "tools/outcome.hpp"
#include "tools/scavenge_arguments.hpp"
#include "tools/tag_location.hpp"

namespace kedge::tools {
namespace {

/// The path of a program installed beside this one. Throws Error{not_found}, in which `why` says what needs it.
std::string path_of_program(const std::string& name, const std::string& why) {
  std::array<char, PATH_MAX> path{};
  const auto length = ::readlink("/proc/self/exe", path.data(), path.size());
  if (length <= 0) fs::throw_system_error("find this program", "/proc/self/exe", errno);
  const std::string own(path.data(), static_cast<std::size_t>(length));
  std::string program = own.substr(0, own.rfind('/') + 1) + name;
  if (::access(program.c_str(), X_OK) == 0) return program;
  throw Error(Failure{ErrorCode::not_found, compose("program not found: {}", why), -1, program, 0});
}

/// Replaces this process by the program of the first word. Throws Error{io | not_found} with `advice`.
[[noreturn]] void exec_program(std::vector<std::string> words, const std::string& advice) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  ::execvp(pointers.front(), pointers.data());
  fs::throw_system_error(advice, words.front(), errno);
}

struct DrainArguments {
  std::string prefix;
  std::string run;
  std::string store;
  std::string launcher;
  unsigned processes = 0;
  bool overtakes = false;
  bool all_runs = false;
  bool dry_run = false;
};

/// The number of nodes in the current allocation, from the resource manager's variables; 1 without one.
unsigned nodes_of_allocation() {
  for (const char* name : {"SLURM_JOB_NUM_NODES", "SLURM_NNODES"}) {
    const auto number = parse_number<unsigned>(process_variable(name).value_or(""));
    if (number && *number > 0) return *number;
  }
  if (const auto path = process_variable("PBS_NODEFILE")) {
    std::ifstream file(*path);
    std::set<std::string> nodes;
    for (std::string node; std::getline(file, node);) nodes.insert(node);
    if (!nodes.empty()) return static_cast<unsigned>(nodes.size());
  }
  return 1;
}

std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words(1);
  for (const char letter : text) {
    if (letter != ' ') words.back() += letter;
    else if (!words.back().empty()) words.emplace_back();
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

/// The first line of the launcher's version.
std::string version_of(const std::string& launcher) {
  std::string text;
  if (FILE* const pipe = ::popen((shell_word(launcher) + " --version 2>&1 </dev/null").c_str(), "r")) {
    std::array<char, 512> part{};
    while (std::fgets(part.data(), part.size(), pipe) != nullptr) text += part.data();
    ::pclose(pipe);
  }
  return text;
}

/// The launcher with its options for one process per node, unless the user gave options.
std::vector<std::string> launcher_words(const DrainArguments& arguments) {
  const auto count = [](unsigned processes) { return std::vector<std::string>{"-n", compose("{}", processes)}; };
  const auto join = [](std::vector<std::string> words, const std::vector<std::string>& more) {
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  const std::vector<std::string> given = words_of(arguments.launcher);
  if (!given.empty()) return arguments.processes == 0 ? given : join(given, count(arguments.processes));
  if (arguments.processes != 0) return join({KEDGE_MPIEXEC}, count(arguments.processes));
  const std::string version = version_of(KEDGE_MPIEXEC);
  const unsigned nodes = nodes_of_allocation();
  if (version.find("Open MPI") != std::string::npos || version.find("OpenRTE") != std::string::npos ||
      version.find("PRRTE") != std::string::npos) {
    return {KEDGE_MPIEXEC, "--map-by", "ppr:1:node"};
  }
  if (version.find("HYDRA") != std::string::npos) return join({KEDGE_MPIEXEC, "-ppn", "1"}, count(nodes));
  return join({KEDGE_MPIEXEC}, count(nodes));
}

/// Not every launcher passes on environment or directory, so this passes every option that is not its default.
std::vector<std::string> option_words(const Options& options) {
  const Options defaults;
  std::vector<std::string> words;
  for (const OptionField& field : option_fields()) {
    const std::string text = field.get(options);
    if (text == field.get(defaults)) continue;
    words.emplace_back("--set");
    words.push_back(compose("{}={}", dotted_name(field), text));
  }
  return words;
}

Options options_for(const DrainArguments& arguments) {
  Options options = load_options(process_environment(), ".").options;
  if (options.load_failure) throw Error(*options.load_failure);
  if (!arguments.prefix.empty()) options.persistent.path = arguments.prefix;
  if (!arguments.run.empty()) options.run = arguments.run;
  if (!arguments.store.empty()) options.store.path = arguments.store;
  const auto file_system = fs::posix_file_system();
  if (!status_of(*file_system, options.persistent.path)) {
    throw Error(Failure{ErrorCode::not_found, missing_prefix_message(arguments.prefix.empty()), -1,
                        options.persistent.path, 0});
  }
  options.persistent.path = file_system->canonical(options.persistent.path);
  return options;
}

Outcome drain(const DrainArguments& arguments) {
  std::vector<std::string> words = launcher_words(arguments);
  words.push_back(path_of_program("kedge-mpi", KEDGE_HAS_MPI
                                                   ? "in a build directory, build the target kedge_product; else "
                                                     "install Kedge again"
                                                   : "this Kedge was built without MPI"));
  words.emplace_back("drain");
  if (arguments.overtakes) words.emplace_back("--overtake");
  if (arguments.all_runs) words.emplace_back("--all-runs");
  for (std::string& word : option_words(options_for(arguments))) words.push_back(std::move(word));
  if (arguments.dry_run) {
    std::string line;
    for (const std::string& word : words) line += (line.empty() ? "" : " ") + shell_word(word);
    print(printable(line) + "\n");
    return Outcome::ok;
  }
  exec_program(std::move(words), "start the launcher; name that of your MPI with --launcher");
}

}  // namespace

Command add_drain(CLI::App& program) {
  auto arguments = std::make_shared<DrainArguments>();
  CLI::App* parser = program.add_subcommand("drain", "Flush what a job that has ended left in its nodes' stores");
  parser->add_option("PREFIX", arguments->prefix, "The job's prefix; default: the configured one (persistent.path)");
  parser->add_option("--run", arguments->run, "The run, if the prefix has several")->type_name("NAME");
  parser->add_flag("--all-runs", arguments->all_runs,
                   "Every run on the prefix that has checkpoints, one after the other; with --run (KEDGE_RUN): that "
                   "one and those of its parts, NAME.*");
  parser->add_option("--store", arguments->store, "Where the job's stores are, if it set store.path itself")
      ->type_name("PATH");
  parser
      ->add_option("-n,--processes", arguments->processes,
                   "Processes to start, at least one on each node; default: one on each")
      ->type_name("N")
      ->check(CLI::PositiveNumber);
  parser
      ->add_option("--launcher", arguments->launcher,
                   "Starts the processes, e.g. \"srun --ntasks-per-node=1\"; default: mpiexec of Kedge's MPI")
      ->type_name("WORDS");
  parser->add_flag("--overtake", arguments->overtakes,
                   "Even if a later start of the job may be at work elsewhere: its flushes then fail, and it ends");
  parser->add_flag("--dry-run", arguments->dry_run, "Print the command that would be run, and run nothing");
  parser->footer(
      "Run it in the job's allocation, with the job's options (kedge.toml, KEDGE_*), when the job has ended: the "
      "newest checkpoint that can be recovered from the stores, whichever number of ranks saved it, is rebuilt if a "
      "node "
      "is gone, protected, and flushed to the prefix. Any number of processes will do. What is on the prefix already "
      "is left alone.\n"
      "Exit status: 0 if the newest checkpoint is on the prefix, 1 if none can be recovered, 75 if another attempt "
      "may succeed (a store is in use, the prefix is full), else 2.");
  return {parser, [arguments] { return drain(*arguments); }};
}

Command add_scavenge(CLI::App& program) {
  auto arguments = std::make_shared<ScavengeArguments>();
  CLI::App* parser = program.add_subcommand("scavenge", "Copy what a job left in this node's stores to its prefix");
  arguments->add_to(*parser);
  parser->footer(
      "For a prolog or epilog that runs on each node after a job has ended; needs no launcher. Copies commits that are "
      "newer than the prefix's to PREFIX/.kedge. The call that copies the last container flushes the checkpoint; if a "
      "node is lost, --finish flushes it and rebuilds that node's containers. The stores are not changed.\nExit "
      "status: 0, 1 if nothing can be recovered, 75 if another attempt may succeed (a store is in use, the prefix is "
      "full), else 2.");
  return {parser, [arguments]() -> Outcome {
            std::vector<std::string> words = {path_of_program("kedge-scavenge", "install Kedge again")};
            for (std::string& word : arguments->words()) words.push_back(std::move(word));
            exec_program(std::move(words), "start it; install Kedge again");
          }};
}

}  // namespace kedge::tools

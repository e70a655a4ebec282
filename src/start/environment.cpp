#include "start/environment.hpp"

#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>
#include <utility>

#include "base/exit_signals.hpp"
#include "base/options_load.hpp"
#include "base/options_values.hpp"
#include "base/text.hpp"
#include "kedge/error.hpp"
#include "store/location.hpp"

namespace kedge::start {
namespace {

constexpr std::string_view kFromVariable = "env:";

std::string host_name() {
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) return {};
  return host.data();
}

/// Drawn by the kernel when it starts: two machines of one name have two. Empty where it cannot be read.
std::string boot_id() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  file >> id;
  return id;
}

struct Process {
  int parent = 0;
  std::string name;
  std::string begun;  ///< in the machine's time
};

/// Of /proc/<pid>/stat: pid (name) state parent ..., and as the 22nd word its beginning. The name may hold anything.
Process process_of(int pid) {
  std::ifstream file(compose("/proc/{}/stat", pid));
  std::string text;
  std::getline(file, text);
  Process process;
  const auto open = text.find('(');
  const auto close = text.rfind(')');
  if (open == std::string::npos || close == std::string::npos) return process;
  process.name = text.substr(open + 1, close - open - 1);
  std::istringstream words(text.substr(close + 1));
  std::string word;
  for (int number = 3; words >> word && number <= 22; ++number) {
    if (number == 4) process.parent = std::atoi(word.c_str());
    if (number == 22) process.begun = word;
  }
  return process;
}

std::string identity_of(const std::string& machine, int pid) {
  return compose("{}/{}@{}", machine, pid, process_of(pid).begun);
}

/// The nearest process above this one that has this name, or 0: scripts may stand between them.
int find_ancestor(std::string_view name) {
  for (int one = ::getppid(); one > 1;) {
    const Process process = process_of(one);
    if (process.name == name) return one;
    one = process.parent;
  }
  return 0;
}

ProcessIds processes_here(const std::string& machine) {
  const int daemon = find_ancestor("hydra_pmi_proxy");
  return {identity_of(machine, ::getpid()), identity_of(machine, ::getppid()),
          daemon == 0 ? std::string() : identity_of(machine, daemon)};
}

/// 1 if it cannot be found out: on a machine with more than 1024.
unsigned cores_of_process() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  if (::sched_getaffinity(0, sizeof cores, &cores) != 0) return 1;
  return static_cast<unsigned>(std::max(CPU_COUNT(&cores), 1));
}

/// With the root directory, which a process may have changed.
std::string mount_namespace() {
  std::array<char, 64> name{};
  struct stat root {};
  const auto length = ::readlink("/proc/self/ns/mnt", name.data(), name.size());
  if (length <= 0 || ::stat("/", &root) != 0) return {};
  return compose("{}/{}/{}", std::string_view(name.data(), static_cast<std::size_t>(length)), root.st_dev, root.st_ino);
}

std::function<int()> watch_process_signals(const std::vector<std::string>& names, const Log& log) {
  if (names.empty()) return [] { return 0; };
  auto signals = std::make_shared<const ExitSignals>(names);
  for (const std::string& name : signals->unwatched_signals()) {
    log.warning(
        compose("no handler could be installed for {} (exit.signals), so the engine does not see that signal; install "
                "the program's own handlers before the engine is made",
                name));
  }
  return [signals = std::move(signals)] { return signals->received_signal(); };
}

}  // namespace

Environment Environment::system() {
  Environment environment;
  environment.file_system = fs::posix_file_system();
  environment.clock = system_clock();
  environment.node = process_variable("KEDGE_NODE").value_or("");
  environment.ranks_per_node =
      parse_number<std::uint32_t>(process_variable("KEDGE_TEST_RANKS_PER_NODE").value_or("0")).value_or(0);
  environment.machine = compose("{}/{}", boot_id(), host_name());
  environment.mounts = mount_namespace();
  environment.processes = processes_here(environment.machine);
  std::error_code unknown;
  environment.directory = std::filesystem::current_path(unknown).string();
  environment.cores = cores_of_process();
  environment.find_variable = process_variable;
  environment.watch_signals = watch_process_signals;
  environment.store_candidates = store::default_roots(process_variable);
  return environment;
}

std::string absolute_path(const Environment& environment, const std::string& path) {
  const bool stays = path.empty() || path.front() == '/' || environment.directory.empty();
  return stays ? path : fs::join(environment.directory, path);
}

std::string node_name(const Environment& environment, int rank) {
  if (!environment.node.empty()) return environment.node;
  if (environment.ranks_per_node != 0) {
    return compose("node{}", static_cast<std::uint32_t>(rank) / environment.ranks_per_node);
  }
  const std::string host = host_name();
  return host.empty() ? "node" : host;
}

bool simulates_nodes(const Environment& environment) {
  return !environment.node.empty() || environment.ranks_per_node != 0;
}

std::string node_identity(const Environment& environment, int rank) {
  if (environment.node.empty() && environment.ranks_per_node != 0) return node_name(environment, rank);
  return compose("{}/{}", environment.machine, environment.node);
}

std::string failure_domain(const Environment& environment, const Options& options, int rank) {
  const std::string& choice = options.topology.failure_domain;
  if (!choice.starts_with(kFromVariable)) return node_identity(environment, rank);
  const std::string name = choice.substr(kFromVariable.size());
  const auto value = environment.find_variable(name);
  if (value && !value->empty()) return *value;
  throw Error(ErrorCode::invalid_argument,
              compose("topology.failure_domain is {} and the environment variable {} is not set on rank {}; set it on "
                      "every rank or choose another topology.failure_domain",
                      choice, name, rank));
}

}  // namespace kedge::start

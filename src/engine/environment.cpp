#include "engine/environment.hpp"

#include <unistd.h>

#include <array>
#include <cstdlib>
#include <utility>

#include "base/text.hpp"
#include "engine/engine_impl.hpp"

namespace kedge::engine {

Environment Environment::system() {
  Environment environment;
  environment.file_system = fs::posix_file_system();
  environment.clock = system_clock();
  if (const char* node = std::getenv("KEDGE_NODE")) environment.node = node;
  environment.store_candidates.emplace_back("/dev/shm");
  for (const char* variable : {"SLURM_TMPDIR", "TMPDIR"}) {
    if (const char* folder = std::getenv(variable)) environment.store_candidates.emplace_back(folder);
  }
  environment.store_candidates.emplace_back("/tmp");
  return environment;
}

Engine Environment::make_engine(std::unique_ptr<Communicator> communicator, Options options, Environment environment) {
  return Engine(std::make_unique<EngineImpl>(std::move(communicator), std::move(options), std::move(environment)));
}

std::string node_name(const Environment& environment, const Options& options, int rank) {
  if (!environment.node.empty()) return environment.node;
  if (options.topology.ranks_per_node != 0) {
    return compose("node{}", static_cast<std::uint32_t>(rank) / options.topology.ranks_per_node);
  }
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) return "node";
  return host.data();
}

}  // namespace kedge::engine

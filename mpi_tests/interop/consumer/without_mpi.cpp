#include <cstdio>
#include <kedge/kedge.hpp>

int main() {
  const kedge::Options options = kedge::Options::load();
  // Naming the engine's functions pulls all of the library in.
  const auto commit = &kedge::Engine::commit;
  std::printf("every %u, %s\n", static_cast<unsigned>(options.schedule.every), commit ? "linked" : "");
  return options.load_failure ? 1 : 0;
}

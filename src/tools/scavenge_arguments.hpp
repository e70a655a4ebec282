// Arguments of kedge scavenge and kedge-scavenge.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}  // namespace CLI

namespace kedge::tools {

struct ScavengeArguments {
  std::vector<std::string> stores;
  std::string finish;
  std::string run;
  std::string job;
  bool overtakes = false;

  /// Makes the parser read into this object, which must outlive it.
  void add_to(CLI::App& parser);
  [[nodiscard]] std::vector<std::string> words() const;
};

}  // namespace kedge::tools

// Arguments of kedge scavenge, and of the program that it starts: the same words.
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

  /// The parser is to read them into this object, which must outlive it.
  void add_to(CLI::App& parser);
  [[nodiscard]] std::vector<std::string> words() const;
};

}  // namespace kedge::tools

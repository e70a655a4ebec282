// What State::add does not compile, one case each: the test looks for the words that say what to do instead.
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kedge/state.hpp"

struct Node {
  std::string name;
};

void add(kedge::State& state) {
  std::vector<double> values;
  const std::vector<double> constant;
  std::vector<bool> flags;
  std::vector<double*> pointers;
  std::vector<Node> nodes;
  std::span<double> span(values);
#if REFUSED == 1
  state.add("a", std::span(values));
#elif REFUSED == 2
  state.add("a", span);
#elif REFUSED == 3
  state.add("a", constant);
#elif REFUSED == 4
  state.add("a", flags);
#elif REFUSED == 5
  state.add("a", pointers);
#elif REFUSED == 6
  state.add("a", nodes);
#else
  state.add("a", values).add("b", kedge::mutable_region(span));
#endif
}

// What State::add does not compile, one case each: the test looks for the words that say what to do instead.
#include <functional>
#include <memory>
#include <ranges>
#include <span>
#include <string>
#include <vector>

#include "kedge/state.hpp"

struct Node {
  std::string name;
};

struct Left {
  double a;
};
struct Right {
  double b;
};
struct Derived : Left, Right {};
std::string kedge_members(const Derived*) { return kedge::members("b", &Derived::b); }

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
#elif REFUSED == 7
  std::vector<std::span<double> > spans;
  state.add("a", spans);
#elif REFUSED == 8
  auto reference = std::ref(values);
  state.add("a", reference);
#elif REFUSED == 9
  const kedge::Region region;
  kedge::Region described = region;
  state.add("a", described);
#elif REFUSED == 10
  auto part = std::ranges::subrange(values);
  state.add("a", part);
#elif REFUSED == 11
  std::vector<Derived> of_two_bases;
  state.add("a", of_two_bases);
#elif REFUSED == 12
  const auto pointer_to = [&] { return values.data(); };
  state.add("a", pointer_to);
#elif REFUSED == 13
  state.add("a", [&] { return kedge::region(values.data(), {1}); });
#else
  state.add("a", values).add("b", kedge::mutable_region(span));
#endif
}

// The guide's lines about buffers that are swapped: what surrounds them in a program. Here the memory is the host's.
#include <kedge/kedge.hpp>

#include <cstdint>
#include <cstdlib>
#include <utility>
#include <vector>

int main() {
  const std::uint64_t rows = 3;
  const std::uint64_t columns = 4;
  std::vector<double> first(rows * columns, 1.5);
  std::vector<double> second(rows * columns, 2.5);
  double* current_on_gpu = first.data();
  double* other_on_gpu = second.data();
  void* stream = nullptr;
  kedge::State state;
  // [example]
  kedge::Engine engine(kedge::single_process(), kedge::Options::load());
  engine.checkpoint("1", state);
  std::swap(current_on_gpu, other_on_gpu);
  engine.checkpoint("2", state);
  second.assign(second.size(), 0.0);
  return engine.restore(state) == "2" && second.front() == 2.5 && first.front() == 1.5 ? EXIT_SUCCESS : EXIT_FAILURE;
}

// The guide's lines about GPU memory: what surrounds them in a program. Here the memory is the host's.
#include <kedge/kedge.hpp>

#include <cstdint>
#include <cstdlib>
#include <vector>

int main() {
  const std::uint64_t rows = 3;
  const std::uint64_t columns = 4;
  std::vector<double> memory(rows * columns, 1.0);
  double* field_on_gpu = memory.data();
  void* stream = nullptr;
  kedge::State state;
  // [example]
  kedge::Engine engine(kedge::single_process(), kedge::Options::load());
  engine.checkpoint("t", state);
  memory.assign(memory.size(), 0.0);
  return engine.restore(state) == "t" && memory.front() == 1.0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

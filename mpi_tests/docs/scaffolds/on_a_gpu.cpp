// The guide's lines about GPU memory: what surrounds them in a program. Here the memory is the host's.
#include <kedge/kedge.hpp>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

int main() {
  const std::uint64_t rows = 3;
  const std::uint64_t columns = 4;
  const std::vector<double> memory(rows * columns, 1.5);
  const double* field_on_gpu = memory.data();
  void* stream = nullptr;
  const std::string tag = "t";
  kedge::Engine engine(kedge::single_process(), kedge::Options::load());
  // [example]
  std::vector<double> loaded(memory.size());
  engine.open();
  const bool is_there = static_cast<bool>(
      engine.load("temperature", {loaded.data(), kedge::DataType::float64, kedge::Shape{rows, columns}}));
  engine.close();
  return is_there && loaded == memory ? EXIT_SUCCESS : EXIT_FAILURE;
}

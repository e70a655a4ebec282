// README's ten lines: what surrounds them in a program, and the job is run twice.
#include <array>
#include <fstream>
#include <string>
#include <vector>

namespace {
const bool input_is_there = (std::ofstream("input.nml") << "n = 3\n").good();
const int last_step = 5;
int step = 0;
std::vector<double> particles(1000, 1.0);
void advance(std::vector<double>& all) {
  for (double& one : all) one *= 0.5;
}
}  // namespace

// [example]

#include <benchmark/benchmark.h>

#include <exception>
#include <iostream>

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  try {
    if (benchmark::RunSpecifiedBenchmarks() == 0) return 2;
  } catch (const std::exception& error) {
    std::cerr << "kedge-micro-bench: " << error.what() << std::endl;
    return 1;
  }
  benchmark::Shutdown();
}

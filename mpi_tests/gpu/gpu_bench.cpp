// kedge-bench --device, without MPI.
#include "gpu/device_bench.hpp"

int main(int argc, char** argv) { return kedge::gpu::device_bench(argc, argv, "gpu_bench"); }

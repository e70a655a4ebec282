// What a checkpoint of a GPU's memory costs, against what the same machine's copies cost in the same run.
#pragma once

namespace kedge::gpu {

/// The exit code: 77 where there is no GPU, which it says.
[[nodiscard]] int device_bench(int argc, char** argv, const char* program);

}  // namespace kedge::gpu

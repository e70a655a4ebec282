// The GPU of a rank.
#pragma once

#include <string>

namespace heat_cuda {

/// Why there is no GPU to compute on; empty if there is one.
[[nodiscard]] std::string why_no_gpu();

/// Makes one of the node's GPUs this rank's: they are assigned round-robin, and shared if there are more ranks than
/// GPUs. Returns its name, and which of how many it is.
std::string use_gpu(int local_rank);

}  // namespace heat_cuda

// A window of steps: they are posted ahead, up to a limit, and completed in order.
#pragma once

#include <cstdint>

namespace kedge::comm {

/// Calls post(0), post(1), … and complete(0), complete(1), … so that at most `depth` steps are posted and not complete.
/// Ranks that take part in each other's steps in one order cannot deadlock.
template <class Post, class Complete>
void run_window(std::uint64_t steps, std::uint64_t depth, Post&& post, Complete&& complete) {
  for (std::uint64_t step = 0; step < steps + depth; ++step) {
    if (step >= depth && step - depth < steps) complete(step - depth);
    if (step < steps) post(step);
  }
}

}  // namespace kedge::comm

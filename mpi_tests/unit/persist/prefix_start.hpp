// Rank 0's tier and records of one start of the run "heat" in /prefix.
#pragma once

#include <memory>

#include "persist/posix_prefix.hpp"
#include "persist/run_record.hpp"
#include "persist/run_start.hpp"

namespace kedge::persist::testing {

struct PrefixStart {
  explicit PrefixStart(const std::shared_ptr<fs::FileSystem>& file_system, const Options::Persistent& options = {})
      : start({file_system, "/prefix", "heat"}) {
    (void)start.take_incarnation();
    start.mark_begun({});
    prefix_storage = posix_prefix_storage(file_system, "/prefix", options, &start);
  }

  RunStart start;
  PrefixStorage prefix_storage;
};

}  // namespace kedge::persist::testing

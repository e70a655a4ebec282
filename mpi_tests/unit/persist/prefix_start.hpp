// Rank 0's tier and records of one start of the run "heat" in /prefix.
#pragma once

#include <memory>

#include "persist/posix_tier.hpp"
#include "persist/run_records.hpp"

namespace kedge::persist::testing {

struct PrefixStart {
  explicit PrefixStart(const std::shared_ptr<fs::FileSystem>& file_system, const Options::Persistent& options = {})
      : records(file_system, "/prefix", "heat") {
    (void)records.take_incarnation();
    records.begin_incarnation({});
    tier = std::make_unique<PosixTier>(file_system, "/prefix", options, &records);
  }

  RunRecords records;
  std::unique_ptr<PosixTier> tier;
};

}  // namespace kedge::persist::testing

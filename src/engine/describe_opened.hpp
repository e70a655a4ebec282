// Log lines for a checkpoint that was opened.
#pragma once

#include <cstdint>
#include <string>

#include "kedge/types.hpp"
#include "recovery/recovery.hpp"

namespace kedge::engine {

/// Pure. Line for a checkpoint of this run, in a job of so many ranks: where its containers came from.
[[nodiscard]] std::string describe_opened(const recovery::Opened& opened, std::uint32_t ranks, double age_s,
                                          double took_s);

/// Pure. Line for a checkpoint of another number of ranks: whose containers are in no store of this job's nodes, and
/// what to do about stores that stay behind; empty if all are there.
[[nodiscard]] std::string describe_not_found(const recovery::Opened& opened);

/// Pure. Line for a checkpoint of another run, on this prefix.
[[nodiscard]] std::string describe_opened(const std::string& prefix, const CommitHead& commit,
                                          std::uint64_t total_bytes, double took_s);

}  // namespace kedge::engine

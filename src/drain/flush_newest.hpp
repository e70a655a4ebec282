// Starts a run only to flush its newest commit.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kedge/communicator.hpp"
#include "kedge/options.hpp"
#include "kedge/types.hpp"
#include "start/environment.hpp"

namespace kedge::drain {

struct Flushed {
  std::optional<CommitHead> commit;  ///< the newest recoverable checkpoint; nothing if the stores have only outputs
  std::uint64_t total_bytes = 0;
  bool was_there = false;     ///< was on the prefix before
  bool is_flushed = false;    ///< by this call
  std::uint64_t outputs = 0;  ///< flushed outputs
};

/// Pure. For messages: text such as " 2 outputs"; empty if there are none.
[[nodiscard]] std::string outputs_of(std::uint64_t count);

/// A job's options for a start that only flushes and changes nothing else.
[[nodiscard]] Options options_to_flush(Options options);

/// COLLECTIVE over as many ranks as the commit has. Finds the newest recoverable checkpoint, flushes it if its
/// generation is `at_least` that and the prefix lacks it, and flushes all outputs that the prefix lacks. Throws as an
/// Engine's calls do; unrecoverable, too, if the run has no commit.
[[nodiscard]] Flushed flush_newest(std::unique_ptr<Communicator> communicator, const Options& options,
                                   const start::Environment& environment, std::uint64_t at_least);

/// COLLECTIVE over as many ranks as made the outputs. Flushes the recoverable outputs of these tags, but no checkpoint.
/// Throws as an Engine's calls do.
[[nodiscard]] Flushed flush_outputs(std::unique_ptr<Communicator> communicator, const Options& options,
                                    const start::Environment& environment, const std::vector<Tag>& tags);

}  // namespace kedge::drain

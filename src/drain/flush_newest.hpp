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
  std::optional<CommitHead> commit;  ///< the newest checkpoint; nothing if the stores have only outputs
  std::uint64_t total_bytes = 0;
  bool was_there = false;     ///< was on the prefix before
  std::uint64_t outputs = 0;  ///< flushed outputs
};

/// Pure. For messages: text such as " 2 outputs"; empty if there are none.
[[nodiscard]] std::string outputs_of(const Flushed& flushed);

/// A job's options for a start that only flushes and changes nothing else.
[[nodiscard]] Options options_to_flush(Options options);

/// COLLECTIVE over as many ranks as the commit has. Flushes the newest recoverable checkpoint and all outputs that the
/// prefix lacks. Throws as an Engine's calls do; unrecoverable, too, if the run has no commit.
[[nodiscard]] Flushed flush_newest(std::unique_ptr<Communicator> communicator, const Options& options,
                                   const start::Environment& environment);

/// COLLECTIVE over as many ranks as made the outputs. Flushes the recoverable outputs of these tags, but no checkpoint.
/// Throws as an Engine's calls do.
[[nodiscard]] Flushed flush_outputs(std::unique_ptr<Communicator> communicator, const Options& options,
                                    const start::Environment& environment, const std::vector<Tag>& tags);

}  // namespace kedge::drain

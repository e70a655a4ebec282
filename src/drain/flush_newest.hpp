// A start of a run that flushes its newest commit and ends.
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
  std::optional<CommitHead> commit;  ///< the newest checkpoint; none: the stores have outputs alone
  std::uint64_t total_bytes = 0;
  bool was_there = false;     ///< on the prefix before
  std::uint64_t outputs = 0;  ///< flushed besides
};

/// Pure. For messages: " 2 outputs", or nothing if there are none.
[[nodiscard]] std::string outputs_of(const Flushed& flushed);

/// A job's options for a start that only flushes: it changes nothing of what they decide for later.
[[nodiscard]] Options options_to_flush(Options options);

/// COLLECTIVE over as many ranks as the commit has. The newest checkpoint that can be recovered, and all outputs that
/// the prefix does not have. Throws as the calls of an Engine; unrecoverable, too, if the run turns out to have no
/// commit.
[[nodiscard]] Flushed flush_newest(std::unique_ptr<Communicator> communicator, const Options& options,
                                   const start::Environment& environment);

/// COLLECTIVE over as many ranks as made them. The outputs of these tags that can be recovered, and no checkpoint.
/// Throws as the calls of an Engine do.
[[nodiscard]] Flushed flush_outputs(std::unique_ptr<Communicator> communicator, const Options& options,
                                    const start::Environment& environment, const std::vector<Tag>& tags);

}  // namespace kedge::drain

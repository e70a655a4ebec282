// Lists a run's commits on the prefix, as far as a selection needs them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "commits/ledger.hpp"
#include "kedge/error.hpp"
#include "kedge/selection.hpp"
#include "persist/prefix_markers.hpp"
#include "persist/prefix_storage.hpp"
#include "recovery/agreement.hpp"
#include "recovery/found_tag.hpp"

namespace kedge::recovery {

struct PrefixSurvey {
  std::vector<FoundTag> tags;            ///< newest first
  std::vector<std::uint8_t> persistent;  ///< whether the prefix has it, for each candidate of the stores
  std::uint64_t highest_generation = 0;
  bool commits_exist = false;
  std::vector<std::string> warnings;
  std::optional<Failure> failure = {};  ///< why `tags` are unknown although the prefix was listed
};

struct PrefixQuery {
  Id128 run_id;
  std::uint32_t world_size = 0;
  OtherRanks other_ranks = OtherRanks::accept;
  Trust trust = Trust::self;
  std::span<const Candidate> in_stores;  ///< newest first
  const Selection& selection;
  const commits::Ledger& ledger;
};

/// Local, rank 0. Lists the tags that the selection can come to, newest first, down to the first that can be opened;
/// manifests are read and checked here, containers when they are fetched. Throws Error{io} if the prefix cannot be
/// listed.
[[nodiscard]] PrefixSurvey survey_prefix(persist::PrefixReader& prefix_storage, const persist::PrefixMarkers& markers,
                                         const PrefixQuery& question);

}  // namespace kedge::recovery

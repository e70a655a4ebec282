// Another run's tags, or copied ones, as a new run's beginning.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "engine/context.hpp"
#include "engine/told_tag.hpp"

namespace kedge::engine {

using GivenUp = std::map<Id128, std::string>;

/// COLLECTIVE. The newest commits that `source` names, down to the first of which the manifest is good, newest first;
/// the same on every rank. `given_up`: found to be no use, and why. A Source whose prefix is itself a tag directory
/// names that one. Throws Error{not_found} if it names none, Error{unrecoverable} if all that it may name cannot be
/// read, Error{io} if its prefix cannot be listed.
[[nodiscard]] std::vector<ToldTag> look_at_source(Context& context, const Source& source, const GivenUp& given_up);

/// Path of the tag directory, as this process names it.
[[nodiscard]] std::string directory_of(const Context& context, const Source& source, const ToldTag& told);

}  // namespace kedge::engine

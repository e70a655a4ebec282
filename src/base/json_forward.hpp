// The names of base/json.hpp for headers, without the library.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace kedge {
using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;  ///< members in the order in which they were added
}  // namespace kedge

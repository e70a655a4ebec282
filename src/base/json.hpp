// JSON and CBOR for the whole house: nlohmann-json is included here alone.
#pragma once

#include <nlohmann/json.hpp>

namespace kedge {
using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;  ///< members in the order in which they were added
}  // namespace kedge

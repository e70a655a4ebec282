// JSON and CBOR for the whole house: nlohmann-json is included here and, by its names alone, in json_forward.hpp. For
// sources: headers name it by that one.
#pragma once

#include <nlohmann/json.hpp>

#include "base/json_forward.hpp"

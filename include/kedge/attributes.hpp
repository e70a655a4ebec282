// Small facts that the application attaches to a checkpoint: simulated time, code version, anything worth searching.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <variant>
#include <vector>

namespace kedge {

/// A scalar, a string (UTF-8) or a small array. Empty arrays are read back as arrays of int64.
using AttributeValue = std::variant<std::int64_t, double, std::string, std::vector<std::int64_t>, std::vector<double>>;

/// Attributes by key. Keys are UTF-8 of 1 to 255 bytes; numbers must be finite; at most 64 KiB as JSON in total. On the
/// prefix, attributes are also HDF5 attributes of checkpoint.h5, for other readers.
using Attributes = std::map<std::string, AttributeValue, std::less<>>;

}  // namespace kedge

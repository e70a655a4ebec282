// Small facts that the application attaches to a checkpoint: simulated time, code version, anything worth searching.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <variant>
#include <vector>

namespace kedge {

/// A scalar, a string (UTF-8) or a small array. An empty array always reads back as one of int64.
using AttributeValue = std::variant<std::int64_t, double, std::string, std::vector<std::int64_t>, std::vector<double>>;

/// By key: any UTF-8 text of 1 to 255 bytes. At most 64 KiB as JSON in total; numbers must be finite.
/// On the prefix they are also HDF5 attributes of checkpoint.h5, for other readers.
using Attributes = std::map<std::string, AttributeValue, std::less<>>;

}  // namespace kedge

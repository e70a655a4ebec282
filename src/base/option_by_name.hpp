// One option, by its name and a value as text: what interfaces to other languages set options with.
#pragma once

#include <string>
#include <string_view>

#include "kedge/options.hpp"

namespace kedge {

/// Local. `name` as in the configuration file, e.g. "store.path"; `value` as in the environment. Throws
/// Error{invalid_argument}: no such option (with a suggestion), or not a value of it; the options are then unchanged.
void set_option(Options& options, std::string_view name, std::string_view value);

/// Local. The option's value as text. Throws Error{invalid_argument}: no such option.
[[nodiscard]] std::string get_option(const Options& options, std::string_view name);

}  // namespace kedge

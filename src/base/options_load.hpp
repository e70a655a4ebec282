// Where option values come from: defaults, then the TOML file, then the environment; and single options by name, as
// interfaces to other languages set them.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kedge/options.hpp"

namespace kedge {

/// Options and, per option (dotted name), where its value came from: "default", "kedge.toml:12" or the name
/// of an environment variable.
struct LoadedOptions {
  Options options;  ///< what was wrong, if anything, is in load_failure
  std::map<std::string, std::string> origin;
};

/// Local. `environment` holds NAME=value entries; ./kedge.toml is looked for in `directory`. The first thing that
/// is wrong ends the reading: what came before it is set, what comes after it is not.
[[nodiscard]] LoadedOptions load_options(const std::vector<std::string>& environment, const std::string& directory);

/// This process's environment, for load_options; and one variable of it, if it is set.
[[nodiscard]] std::vector<std::string> process_environment();
[[nodiscard]] std::optional<std::string> process_variable(const std::string& name);

/// Local. `name` as in the configuration file, e.g. "store.path"; `value` as in the environment. Throws
/// Error{invalid_argument}: no such option (with a suggestion), or not a value of it; the options are then unchanged.
void set_option(Options& options, std::string_view name, std::string_view value);

/// Local. The option's value as text. Throws Error{invalid_argument}: no such option.
[[nodiscard]] std::string get_option(const Options& options, std::string_view name);

}  // namespace kedge

// Where option values come from: defaults, then the TOML file, then the environment.
#pragma once

#include <map>
#include <optional>
#include <string>
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

}  // namespace kedge

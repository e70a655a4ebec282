// Loads options from defaults, then the TOML file, then the environment; and sets single options by name, for
// interfaces to other languages.
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
  Options options;  ///< the options; those read before load_failure, if there is one
  std::map<std::string, std::string> origin;
};

/// Reads the options. `environment` holds NAME=value entries; ./kedge.toml is looked for in `directory`. The first
/// error ends the reading: what came before it is set, what comes after it is not.
[[nodiscard]] LoadedOptions load_options(const std::vector<std::string>& environment, const std::string& directory);

/// Returns this process's environment, for load_options().
[[nodiscard]] std::vector<std::string> process_environment();
/// Returns an environment variable of this process, if it is set.
[[nodiscard]] std::optional<std::string> process_variable(const std::string& name);

/// Sets an option by its name in the configuration file, e.g. "store.path", to a value as in the environment. Throws
/// Error{invalid_argument}, and changes nothing, if there is no such option (with a suggestion) or the value is
/// invalid.
void set_option(Options& options, std::string_view name, std::string_view value);

/// Returns an option's value as text. Throws Error{invalid_argument} if there is no such option.
[[nodiscard]] std::string get_option(const Options& options, std::string_view name);

}  // namespace kedge

// Options that there were once: a file or an environment that still sets one gets a message that says what to write.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace kedge {

/// Returns a message about a removed option, by its dotted name: "there is no option store.io any more; ...". Returns
/// nothing if no option ever had this name. Pure.
[[nodiscard]] std::optional<std::string> describe_removed_option(std::string_view name);

/// Returns a message about a removed option, by its variable: "KEDGE_STORE_IO". Pure.
[[nodiscard]] std::optional<std::string> describe_removed_variable(std::string_view variable);

}  // namespace kedge

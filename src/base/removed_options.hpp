// Options that there were once: a file or an environment that still sets one is told what to write.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace kedge {

/// Pure. What to say of an option that was removed, by its dotted name: "there is no option store.io any more; ...".
/// Nothing if there never was one of this name.
[[nodiscard]] std::optional<std::string> describe_removed_option(std::string_view name);

/// Pure. As describe_removed_option, by its variable: "KEDGE_STORE_IO".
[[nodiscard]] std::optional<std::string> describe_removed_variable(std::string_view variable);

}  // namespace kedge

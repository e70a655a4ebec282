// Variables of an environment, as a map.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>

namespace kedge::faults {

using Variables = std::map<std::string, std::string>;

inline std::function<std::optional<std::string>(const std::string&)> from(Variables variables) {
  return [variables = std::move(variables)](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  };
}

}  // namespace kedge::faults

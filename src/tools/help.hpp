// Help texts with folded lines, and `kedge help [COMMAND]`.
#pragma once

#include <string>

#include "tools/outcome.hpp"

namespace CLI {
class App;
}  // namespace CLI

namespace kedge::tools {

/// Folds the help of the program and of all subcommands added later at kColumns.
void fit_help(CLI::App& program);

/// Null if there is no such subcommand.
[[nodiscard]] const CLI::App* find_command(const CLI::App& program, const std::string& name);

/// Error message for an unknown subcommand, with the most similar one.
[[nodiscard]] std::string unknown_command(const CLI::App& program, const std::string& word);

}  // namespace kedge::tools

// The command's help: every text of CLI11 in lines that fit, and `kedge help [COMMAND]`.
#pragma once

#include <string>

#include "tools/outcome.hpp"

namespace CLI {
class App;
}  // namespace CLI

namespace kedge::tools {

/// Makes program, and all subcommands that are added later, print help in lines of at most kColumns.
void fit_help(CLI::App& program);

/// Nothing if there is no such subcommand.
[[nodiscard]] const CLI::App* find_command(const CLI::App& program, const std::string& name);

/// Error for a word that is not one of the program's subcommands, with the nearest one.
[[nodiscard]] std::string unknown_command(const CLI::App& program, const std::string& word);

}  // namespace kedge::tools

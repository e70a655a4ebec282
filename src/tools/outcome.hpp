// Shared by all subcommands: parsing, exit status, output.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "kedge/error.hpp"

namespace CLI {
class App;
}  // namespace CLI

namespace kedge::tools {

/// Exit status. Scripts depend on the numbers: do not change them.
enum class Outcome : std::uint8_t {
  ok = 0,           ///< everything is intact
  damaged = 1,      ///< something is damaged
  not_checked = 2,  ///< something is missing, unreadable or not a container; or wrong usage
  try_again = 75,   ///< copying or removing failed, and another attempt may succeed
};

/// A subcommand: its parser, and its action if it was selected. `run` may throw Error.
struct Command {
  CLI::App* parser = nullptr;
  std::function<Outcome()> run;
};

/// Each function adds its subcommand to the program.
[[nodiscard]] Command add_completion(CLI::App& program);
[[nodiscard]] Command add_config(CLI::App& program);
[[nodiscard]] Command add_drain(CLI::App& program);
[[nodiscard]] Command add_drop(CLI::App& program);
[[nodiscard]] Command add_extract(CLI::App& program);
[[nodiscard]] Command add_ls(CLI::App& program);
[[nodiscard]] Command add_scavenge(CLI::App& program);
[[nodiscard]] Command add_show(CLI::App& program);
[[nodiscard]] Command add_verify(CLI::App& program);

/// Prints the failure and returns the exit status for it.
[[nodiscard]] Outcome explain(const Failure& failure);

/// Prints the failure of a command that can be retried (kedge/exit_status.hpp) and returns the exit status.
[[nodiscard]] Outcome report_failed_attempt(const Failure& failure);

/// Prints to standard output, in order with other output.
void print(std::string_view text);
/// Prints "kedge: <text>" and a newline to standard error, folded.
void print_error(std::string_view text);

/// The failure as text: "<path>: <message> (<errno's text>)".
[[nodiscard]] std::string describe(const Failure& failure);

}  // namespace kedge::tools

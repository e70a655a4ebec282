// Common parts of all subcommands of `kedge`: their place on the command line, exit status, output.
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

/// Exit status of the program. Scripts depend on the numbers: do not change them.
enum class Outcome : std::uint8_t {
  ok = 0,           ///< everything asked for is as it was written
  damaged = 1,      ///< something is not what was written
  not_checked = 2,  ///< something could not be checked (missing, unreadable, not a container), or wrong usage
  try_again = 75,   ///< of commands that copy or free something: it failed, and another attempt may succeed
};

/// A subcommand: its parser, and what to do if the command line named it. `run` may throw Error.
struct Command {
  CLI::App* parser = nullptr;
  std::function<Outcome()> run;
};

/// Each adds its subcommand to the program.
[[nodiscard]] Command add_completion(CLI::App& program);
[[nodiscard]] Command add_config(CLI::App& program);
[[nodiscard]] Command add_drain(CLI::App& program);
[[nodiscard]] Command add_drop(CLI::App& program);
[[nodiscard]] Command add_extract(CLI::App& program);
[[nodiscard]] Command add_help(CLI::App& program);
[[nodiscard]] Command add_ls(CLI::App& program);
[[nodiscard]] Command add_scavenge(CLI::App& program);
[[nodiscard]] Command add_show(CLI::App& program);
[[nodiscard]] Command add_verify(CLI::App& program);

/// Complains, in words for people; what a program that met this failure exits with.
[[nodiscard]] Outcome explain(const Failure& failure);

/// Complains for a command that copies or frees something, and may be called again (kedge/exit_status.hpp).
[[nodiscard]] Outcome report_failed_attempt(const Failure& failure);

/// To standard output, in order with everything else written there.
void print(std::string_view text);
/// To standard error: "kedge: <text>" and a newline, folded.
void print_error(std::string_view text);

/// The failure in words for people: "<path>: <message> (<errno's words>)".
[[nodiscard]] std::string describe(const Failure& failure);

}  // namespace kedge::tools

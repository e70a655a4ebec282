// The `kedge` command: shows, verifies, extracts and removes checkpoints, without MPI and without the HDF5 library.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/suggest.hpp"
#include "base/text.hpp"
#include "format/on_disk.hpp"
#include "tools/outcome.hpp"
#include "tools/tag_location.hpp"
#include "tools/text_format.hpp"

namespace kedge::tools {
namespace {

constexpr std::size_t kNameColumns = 24;

/// CLI11's formatter with folded lines. It omits positionals' types, which their names imply.
class FittingFormatter final : public CLI::Formatter {
 public:
  std::string make_option(const CLI::Option* option, bool is_positional) const override {
    std::string name = make_option_name(option, is_positional);
    if (!is_positional && option->get_type_size() != 0) name += " " + option->get_type_name();
    return entry(name, option->get_description());
  }
  std::string make_subcommand(const CLI::App* command) const override {
    return entry(command->get_display_name(true), command->get_description());
  }
  std::string make_description(const CLI::App* app) const override { return fold(app->get_description(), 0) + "\n"; }
  std::string make_footer(const CLI::App* app) const override { return fold(app->get_footer(), 0) + "\n"; }

 private:
  static std::string entry(const std::string& name, const std::string& description) {
    std::string text = "  " + name;
    if (width(text) + 2 > kNameColumns) text += "\n" + std::string(kNameColumns, ' ');
    else text.append(kNameColumns - width(text), ' ');
    return fold(text + description, kNameColumns) + "\n";
  }
};

/// Folds the help of the program and of all subcommands added later at kColumns.
void fit_help(CLI::App& program) { program.formatter(std::make_shared<FittingFormatter>()); }

/// Null if there is no such subcommand.
const CLI::App* find_command(const CLI::App& program, const std::string& name) {
  const auto found = program.get_subcommands([&](const CLI::App* command) { return command->get_name() == name; });
  return found.empty() ? nullptr : found.front();
}

/// Error message for an unknown subcommand, with the most similar one.
std::string unknown_command(const CLI::App& program, const std::string& word) {
  std::vector<std::string> known;
  for (const CLI::App* command : program.get_subcommands([](const CLI::App*) { return true; })) {
    known.push_back(command->get_name());
  }
  const auto meant = nearest_name(word, known);
  return compose("unknown command '{}'{}; kedge --help lists the commands", printable(word),
                 meant ? compose(" (did you mean '{}'?)", *meant) : "");
}

Outcome help(const CLI::App& program, const std::string& word) {
  const auto help_of = [&](const CLI::App& app, const std::string& name) {  // App::help would describe `kedge help`
    return program.get_formatter()->make_help(&app, name, CLI::AppFormatMode::Normal);
  };
  if (word.empty()) {
    print(help_of(program, program.get_name()));
    return Outcome::ok;
  }
  const CLI::App* command = find_command(program, word);
  if (command == nullptr) {
    print_error(unknown_command(program, word));
    return Outcome::not_checked;
  }
  print(help_of(*command, program.get_name() + " " + word));
  return Outcome::ok;
}

Command add_help(CLI::App& program) {
  auto word = std::make_shared<std::string>();
  CLI::App* parser = program.add_subcommand("help", "Show help for a command, or list the commands");
  parser->add_option("COMMAND", *word, "Command to describe; default: list all");
  parser->footer("Exit status: 0, or 2 if there is no such command.");
  return {parser, [&program, word] { return help(program, *word); }};
}

/// Whether a command was called without its operand.
bool lacks_checkpoint(const CLI::ParseError& error) {
  return error.get_name() == "RequiredError" && std::string_view(error.what()).starts_with(kCheckpointOperand);
}

// Wrong usage is "not checked" for scripts: 1 means damage.
Outcome explain_usage(const CLI::App& program, const CLI::ParseError& error, int count, char** words) {
  if (error.get_exit_code() == 0) {  // --help, --version
    program.exit(error);
    return Outcome::ok;
  }
  const std::string word = count > 1 ? words[1] : "";
  const bool is_known = find_command(program, word) != nullptr;
  if (!word.empty() && word.front() != '-' && !is_known) {
    print_error(unknown_command(program, word));
  } else if (is_known && lacks_checkpoint(error)) {
    print_error(compose(
        "name a checkpoint: kedge {0} latest takes the newest, kedge ls lists the tags; a directory or a file of a "
        "store or prefix works, too; see kedge {0} --help",
        word));
  } else {
    print_error(compose("{}; see kedge {}--help", printable(error.what()), is_known ? word + " " : ""));
  }
  return Outcome::not_checked;
}

Outcome run(int count, char** words) {
  CLI::App program{"Inspects, verifies, extracts and removes Kedge's checkpoints, on any node and while a job runs.",
                   "kedge"};
  fit_help(program);
  program.set_version_flag("--version", compose("kedge {} (container format {}, GPU memory: {})", KEDGE_VERSION,
                                                format::kFormatVersion, KEDGE_HAS_CUDA ? "yes" : "no"));
  program.require_subcommand(1);
  program.footer(
      "Exit status: 0 ok, 1 something is damaged, 2 something could not be checked.\n"
      "More: man kedge");
  const std::vector<Command> commands = {
      add_ls(program),    add_show(program), add_verify(program),   add_extract(program), add_config(program),
      add_drain(program), add_drop(program), add_scavenge(program), add_help(program),    add_completion(program)};
  try {
    program.parse(count, words);
  } catch (const CLI::ParseError& error) {
    return explain_usage(program, error, count, words);
  }
  for (const Command& command : commands) {
    if (command.parser->parsed()) return command.run();
  }
  return Outcome::not_checked;
}

}  // namespace
}  // namespace kedge::tools

int main(int count, char** words) {
  using kedge::tools::Outcome;
  Outcome outcome = Outcome::not_checked;
  try {
    outcome = kedge::tools::run(count, words);
  } catch (const kedge::Error& error) {
    kedge::tools::print_error(kedge::tools::describe(error.failure()));
    outcome = error.code() == kedge::ErrorCode::corrupt ? Outcome::damaged : Outcome::not_checked;
  } catch (const std::exception& error) {
    kedge::tools::print_error(kedge::compose("unexpected: {}", error.what()));
  }
  // Output that did not reach a full disk must not count as success.
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    kedge::tools::print_error("the output could not be written; check the disk or pipe it goes to");
    if (outcome == Outcome::ok) outcome = Outcome::not_checked;
  }
  return static_cast<int>(outcome);
}

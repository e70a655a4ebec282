#include "tools/help.hpp"

#include <CLI/CLI.hpp>
#include <memory>
#include <vector>

#include "base/printable.hpp"
#include "base/suggest.hpp"
#include "base/text.hpp"
#include "tools/table.hpp"

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

}  // namespace

void fit_help(CLI::App& program) { program.formatter(std::make_shared<FittingFormatter>()); }

const CLI::App* find_command(const CLI::App& program, const std::string& name) {
  const auto found = program.get_subcommands([&](const CLI::App* command) { return command->get_name() == name; });
  return found.empty() ? nullptr : found.front();
}

std::string unknown_command(const CLI::App& program, const std::string& word) {
  std::vector<std::string> known;
  for (const CLI::App* command : program.get_subcommands([](const CLI::App*) { return true; })) {
    known.push_back(command->get_name());
  }
  const auto meant = nearest(word, known);
  return compose("unknown command '{}'{}; kedge --help lists the commands", printable(word),
                 meant ? compose(" (did you mean '{}'?)", *meant) : "");
}

Command add_help(CLI::App& program) {
  auto word = std::make_shared<std::string>();
  CLI::App* parser = program.add_subcommand("help", "Show help for a command, or list the commands");
  parser->add_option("COMMAND", *word, "Command to describe; default: list all");
  parser->footer("Exit status: 0, or 2 if there is no such command.");
  return {parser, [&program, word] { return help(program, *word); }};
}

}  // namespace kedge::tools

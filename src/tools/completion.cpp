// kedge completion SHELL: a shell script that completes kedge's commands, generated from the parser's description.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "base/text.hpp"
#include "tools/outcome.hpp"

namespace kedge::tools {
namespace {

/// How a word on the command line is completed.
struct WordKind {
  bool tags = false;
  bool files = false;
  bool directories = false;
  std::string words;  ///< separated by spaces
};

/// Names of positionals and values determine how they are completed.
WordKind kind_of(const CLI::App& program, const std::string& name) {
  const auto has = [&](std::string_view part) { return name.find(part) != std::string::npos; };
  WordKind kind;
  kind.tags = has("TAG");
  kind.files = has("FILE");
  kind.directories = !kind.files && (has("DIRECTORY") || has("PREFIX") || has("STORE"));
  if (has("SHELL")) kind.words = "bash zsh fish";
  if (has("COMMAND")) {
    for (const CLI::App* command : program.get_subcommands([](const CLI::App*) { return true; })) {
      kind.words += (kind.words.empty() ? "" : " ") + command->get_name();
    }
  }
  return kind;
}

struct Option {
  std::vector<std::string> names;  ///< with dashes
  std::string description;
  std::string value;  ///< name of its argument; empty if it has none
};

struct Words {
  std::string name;
  std::string description;
  std::vector<Option> options;
  std::string positional;  ///< name of the positional arguments
};

Words words_of(const CLI::App& command) {
  Words words{command.get_name(), command.get_description(), {}, {}};
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_positional()) {
      words.positional += (words.positional.empty() ? "" : "|") + option->get_name(true, false);
      continue;
    }
    Option one{{}, option->get_description(), option->get_type_size() == 0 ? "" : option->get_type_name()};
    for (const std::string& name : option->get_snames()) one.names.push_back("-" + name);
    for (const std::string& name : option->get_lnames()) one.names.push_back("--" + name);
    words.options.push_back(std::move(one));
  }
  return words;
}

std::vector<Words> commands_of(const CLI::App& program) {
  std::vector<Words> commands;
  for (const CLI::App* command : program.get_subcommands([](const CLI::App*) { return true; })) {
    commands.push_back(words_of(*command));
  }
  return commands;
}

std::string joined(const std::vector<std::string>& parts, std::string_view between) {
  std::string text;
  for (const std::string& part : parts) {
    if (!text.empty() && !part.empty()) text += between;
    text += part;
  }
  return text;
}

std::string option_names(const Words& words) {
  std::vector<std::string> names;
  for (const Option& option : words.options) names.insert(names.end(), option.names.begin(), option.names.end());
  return joined(names, " ");
}

std::string command_names(const std::vector<Words>& commands) {
  std::vector<std::string> names;
  names.reserve(commands.size());
  for (const Words& command : commands) names.push_back(command.name);
  return joined(names, " ");
}

// --- bash ---

std::string bash_reply(const WordKind& kind, const std::string& options) {
  std::string line = compose("      words={}", in_quotes(joined({options, kind.words}, " ")));
  if (kind.tags) line += "; tags=1";
  if (kind.files) line += "; files=-f";
  if (kind.directories) line += "; files=-d";
  return line + " ;;\n";
}

std::string bash(const CLI::App& program) {
  const auto commands = commands_of(program);
  std::string text =
      "# bash completion for kedge, made by: kedge completion bash\n"
      "_kedge() {\n"
      "  local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}\n"
      "  local command= prefix= words= tags= files= i\n"
      "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
      "    case ${COMP_WORDS[i]} in\n"
      "      --prefix) prefix=${COMP_WORDS[i+1]} ;;\n"
      "      -*) ;;\n"
      "      *) [[ $command ]] || command=${COMP_WORDS[i]} ;;\n"
      "    esac\n"
      "  done\n"
      "  case $command:$before in\n";
  for (const Words& command : commands) {
    for (const Option& option : command.options) {
      if (option.value.empty()) continue;
      std::vector<std::string> patterns;
      for (const std::string& name : option.names) patterns.push_back(command.name + ":" + name);
      text += "    " + joined(patterns, "|") + ")\n" + bash_reply(kind_of(program, option.value), "");
    }
    text += "    " + command.name + ":*)\n" + bash_reply(kind_of(program, command.positional), option_names(command));
  }
  return text + "    :*)\n" + bash_reply({}, command_names(commands) + " " + option_names(words_of(program))) +
         "  esac\n"
         "  prefix=${prefix//[\\\\\\'\\\"]/}  # the word still has its quotes\n"
         "  [[ $tags ]] && words+=\" $(kedge ls --tags ${prefix:+\"$prefix\"} 2>/dev/null)\"\n"
         "  mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$current\")\n"
         "  [[ $files ]] || return 0\n"
         "  compopt -o filenames 2>/dev/null\n"
         "  mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen $files -- \"$current\")\n"
         "}\n"
         "complete -F _kedge kedge\n";
}

// --- zsh ---

/// Colons and brackets are special in _arguments.
std::string zsh_text(std::string_view text) {
  std::string out;
  for (const char letter : text) {
    if (letter == ':' || letter == '[' || letter == ']') out += '\\';
    out += letter;
  }
  return out;
}

std::string zsh_action(const WordKind& kind) {
  if (!kind.words.empty()) return "(" + kind.words + ")";
  if (kind.tags) return "_kedge_tags";
  if (kind.files) return "_files";
  return kind.directories ? "_files -/" : " ";
}

std::string zsh_argument(const Option& option, const CLI::App& program) {
  std::string all;
  for (const std::string& name : option.names) {
    std::string spec = name + "[" + zsh_text(option.description) + "]";
    if (!option.value.empty()) {
      spec += ":" + zsh_text(option.value) + ":" + zsh_action(kind_of(program, option.value));
    }
    all += " \\\n        " + in_quotes(spec);
  }
  return all;
}

std::string zsh(const CLI::App& program) {
  std::string text =
      "#compdef kedge\n"
      "# zsh completion for kedge, made by: kedge completion zsh\n"
      "_kedge_tags() {\n"
      "  local -a names prefix\n"
      "  local at=${words[(I)--prefix]}\n"
      "  (( at )) && prefix=(${(Q)words[at+1]})\n"
      "  names=(${(f)\"$(kedge ls --tags $prefix 2>/dev/null)\"})\n"
      "  _alternative 'tags:tag:compadd -a names' 'files:file:_files'\n"
      "}\n"
      "_kedge() {\n"
      "  local -a commands\n"
      "  commands=(\n";
  const auto commands = commands_of(program);
  for (const Words& command : commands) {
    text += "    " + in_quotes(command.name + ":" + zsh_text(command.description)) + "\n";
  }
  text += "  )\n  if (( CURRENT == 2 )); then\n    _describe -t commands command commands\n    _arguments";
  for (const Option& option : words_of(program).options) text += zsh_argument(option, program);
  text += "\n    return\n  fi\n  local command=$words[2]\n  shift words\n  (( CURRENT-- ))\n  case $command in\n";
  for (const Words& command : commands) {
    text += "    " + command.name + ")\n      _arguments";
    for (const Option& option : command.options) text += zsh_argument(option, program);
    if (!command.positional.empty()) {
      const std::string spec =
          "*:" + zsh_text(command.positional) + ":" + zsh_action(kind_of(program, command.positional));
      text += " \\\n        " + in_quotes(spec);
    }
    text += " ;;\n";
  }
  return text + "  esac\n}\nif [[ $funcstack[1] == _kedge ]]; then _kedge \"$@\"; else compdef _kedge kedge; fi\n";
}

// --- fish ---

std::string fish_arguments(const WordKind& kind) {
  std::string text;
  if (!kind.words.empty()) text += " -a " + in_quotes(kind.words);
  if (kind.tags) text += " -a '(kedge ls --tags (__kedge_prefix) 2>/dev/null)'";
  if (kind.directories) text += " -a '(__fish_complete_directories)'";
  return text;
}

std::string fish_option(const Option& option, const std::string& condition, const CLI::App& program) {
  std::string line = "complete -c kedge -n " + in_quotes(condition);
  for (const std::string& name : option.names) {
    line += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
  }
  if (!option.value.empty()) line += " -x" + fish_arguments(kind_of(program, option.value));
  return line + " -d " + in_quotes(option.description) + "\n";
}

std::string fish(const CLI::App& program) {
  std::string text =
      "# fish completion for kedge, made by: kedge completion fish\n"
      "function __kedge_prefix\n"
      "  set -l words (commandline -opc)\n"
      "  set -l at (contains -i -- --prefix $words); and echo $words[(math $at + 1)]\n"
      "end\n"
      "complete -c kedge -f\n";
  for (const Option& option : words_of(program).options) {
    text += fish_option(option, "__fish_use_subcommand", program);
  }
  for (const Words& command : commands_of(program)) {
    const std::string condition = "__fish_seen_subcommand_from " + command.name;
    text += compose("complete -c kedge -n __fish_use_subcommand -a {} -d {}\n", command.name,
                    in_quotes(command.description));
    for (const Option& option : command.options) text += fish_option(option, condition, program);
    const WordKind kind = kind_of(program, command.positional);
    const std::string arguments = fish_arguments(kind);
    if (kind.files) text += "complete -c kedge -n " + in_quotes(condition) + " -F\n";
    if (!arguments.empty()) text += "complete -c kedge -n " + in_quotes(condition) + arguments + "\n";
  }
  return text;
}

Outcome completion(const CLI::App& program, const std::string& shell) {
  print(shell == "bash" ? bash(program) : shell == "zsh" ? zsh(program) : fish(program));
  return Outcome::ok;
}

}  // namespace

Command add_completion(CLI::App& program) {
  auto shell = std::make_shared<std::string>();
  CLI::App* parser = program.add_subcommand("completion", "Print the shell completion script for kedge");
  parser->add_option("SHELL", *shell, "bash, zsh or fish")->required()->check(CLI::IsMember({"bash", "zsh", "fish"}));
  parser->footer(
      "Installing kedge puts the scripts where the shells look for them. To try one:\n"
      "  bash:  source <(kedge completion bash)\n"
      "  zsh:   source <(kedge completion zsh)\n"
      "  fish:  kedge completion fish | source");
  return {parser, [&program, shell] { return completion(program, *shell); }};
}

}  // namespace kedge::tools

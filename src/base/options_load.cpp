#include "base/options_load.hpp"

#include <toml++/toml.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <sstream>
#include <utility>

#include "base/attempt.hpp"
#include "base/expand_path.hpp"
#include "base/options_fields.hpp"
#include "base/removed_options.hpp"
#include "base/suggest.hpp"
#include "base/text.hpp"
#include "kedge/error.hpp"

namespace kedge {
namespace {

// "; did you mean store.path?", or how to see the names that there are.
std::string suggestion_text(std::string_view word, const std::vector<std::string>& known) {
  if (const auto meant = nearest_name(word, known)) return compose("; did you mean {}?", *meant);
  return "; `kedge config` lists all options";
}

void assign(LoadedOptions& loaded, const OptionField& field, const std::string& value, const std::string& origin) {
  if (!field.set(loaded.options, value) || !field.is_valid(loaded.options)) {
    refuse(ErrorCode::invalid_argument,
           compose("{}: {} must be {}, not \"{}\"", origin, dotted_name(field), field.expects, value));
  }
  loaded.origin[dotted_name(field)] = origin;
}

// The TOML side -----------------------------------------------------------------------------------------

const OptionField* find_field(std::string_view section, std::string_view key) {
  for (const OptionField& field : option_fields()) {
    if (field.section == section && field.key == key) return &field;
  }
  return nullptr;
}

bool is_section(std::string_view name) {
  for (const OptionField& field : option_fields()) {
    if (!name.empty() && field.section == name) return true;
  }
  return false;
}

// Keys of the section, and at top level the section names too.
std::vector<std::string> known_names(std::string_view section) {
  std::vector<std::string> names;
  for (const OptionField& field : option_fields()) {
    if (field.section == section) names.push_back(dotted_name(field));
    else if (section.empty() && (names.empty() || names.back() != field.section)) names.emplace_back(field.section);
  }
  return names;
}

[[noreturn]] void refuse_unknown(const std::string& origin, const std::string& section, std::string_view key) {
  const std::string name = section.empty() ? std::string(key) : compose("{}.{}", section, key);
  if (const auto advice = describe_removed_option(name))
    refuse(ErrorCode::invalid_argument, compose("{}: {}", origin, *advice));
  for (const OptionField& field : option_fields()) {  // the right key in the wrong section
    if (field.key == key)
      refuse(ErrorCode::invalid_argument,
             compose("{}: there is no option {}; did you mean {}?", origin, name, dotted_name(field)));
  }
  refuse(ErrorCode::invalid_argument,
         compose("{}: there is no option {}{}", origin, name, suggestion_text(name, known_names(section))));
}

// A path with a colon in it would be two.
std::optional<std::string> join_array(const toml::array& paths) {
  std::string text;
  for (const toml::node& path : paths) {
    if (!path.is_string() || path.ref<std::string>().find(':') != std::string::npos) return std::nullopt;
    text += (text.empty() ? "" : ":") + path.ref<std::string>();
  }
  return text;
}

// The value as it would be written in the file, in one line.
std::string to_toml_text(const toml::node& node) {
  std::ostringstream text;
  text << toml::toml_formatter(node, toml::toml_formatter::default_flags & ~toml::format_flags::indentation);
  std::string line = text.str();
  std::ranges::replace(line, '\n', ' ');
  return line;
}

// The value in the spelling of the environment; nothing if its TOML type does not suit the option.
std::optional<std::string> to_field_text(const toml::node& node, FieldKind kind) {
  if (kind == FieldKind::paths) return node.is_array() ? join_array(*node.as_array()) : std::nullopt;
  const bool is_words =
      kind == FieldKind::text || kind == FieldKind::time || kind == FieldKind::choice || kind == FieldKind::size;
  if (is_words && node.is_string()) return node.ref<std::string>();
  if (kind == FieldKind::time && node.is_date_time()) return to_toml_text(node);
  const bool is_number =
      kind == FieldKind::count || kind == FieldKind::size || kind == FieldKind::seconds || kind == FieldKind::time;
  if (is_number && node.is_integer()) return compose("{}", node.ref<std::int64_t>());
  if (kind == FieldKind::seconds && node.is_floating_point()) return compose("{}", node.ref<double>());
  if (kind == FieldKind::flag && node.is_boolean()) return node.ref<bool>() ? "true" : "false";
  return std::nullopt;
}

std::string source_location(const std::string& path, const toml::source_region& region) {
  return compose("{}:{}", path, region.begin.line);
}

// NOLINTNEXTLINE(misc-no-recursion): two levels, sections do not nest
void apply_table(LoadedOptions& loaded, const toml::table& table, const std::string& section, const std::string& path) {
  for (const auto& [key, node] : table) {
    const std::string origin = source_location(path, key.source());
    if (section.empty() && is_section(key.str())) {
      const toml::table* inner = node.as_table();
      if (inner == nullptr)
        refuse(ErrorCode::invalid_argument,
               compose("{}: {} is a section; write [{}] on its own line and the section's options below it", origin,
                       key.str(), key.str()));
      apply_table(loaded, *inner, std::string(key.str()), path);
      continue;
    }
    const OptionField* field = find_field(section, key.str());
    if (field == nullptr) refuse_unknown(origin, section, key.str());
    const auto text = to_field_text(node, field->kind);
    if (!text)
      refuse(ErrorCode::invalid_argument,
             compose("{}: {} must be {}, not {}", origin, dotted_name(*field), field->expects, to_toml_text(node)));
    assign(loaded, *field, *text, origin);
    if (loaded.options.start != StartMode::continue_)
      refuse(ErrorCode::invalid_argument,
             compose("{}: start = \"{}\" would act on every start with this file; remove the line, and set "
                     "KEDGE_START={} in the environment of the one start",
                     origin, *text, *text));
  }
}

void apply_file(LoadedOptions& loaded, const std::string& path, bool required) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    if (!required && errno == ENOENT) return;
    throw Error(Failure{ErrorCode::invalid_argument,
                        required ? "the file named by KEDGE_CONFIG cannot be read; correct the variable or unset it"
                                 : "the configuration file cannot be read; correct its permissions or remove it",
                        -1, path, errno});
  }
  std::string text;
  std::array<char, 4096> piece{};
  while (file.read(piece.data(), piece.size()), file.gcount() > 0) {
    text.append(piece.data(), static_cast<std::size_t>(file.gcount()));
  }
  if (file.bad()) refuse(ErrorCode::invalid_argument, compose("{}: cannot be read; it must be a regular file", path));
  try {
    apply_table(loaded, toml::parse(text, path), "", path);
  } catch (const toml::parse_error& error) {
    refuse(ErrorCode::invalid_argument,
           compose("{}: not valid TOML: {} (text, and a number with a unit, are written in quotes: \"64 GiB\")",
                   source_location(path, error.source()), error.description()));
  }
}

// The environment side ----------------------------------------------------------------------------------

/// Suffixes that a system's module files use for locations of a library. A list, not everything that is near to no
/// option: a misspelt KEDGE_RUN must never be ignored.
constexpr std::array kModuleFileVariables = {
    "ROOT",        "ROOT_DIR",   "DIR",        "HOME",        "HOME_DIR", "BASE",       "PREFIX",  "PATH",
    "INSTALL_DIR", "BIN",        "BINDIR",     "BIN_DIR",     "LIB",      "LIBS",       "LIBDIR",  "LIB_DIR",
    "LIBRARY",     "LIBRARIES",  "LIBPATH",    "LIBRARY_DIR", "INC",      "INCDIR",     "INC_DIR", "INCLUDE",
    "INCLUDES",    "CPATH",      "INCLUDEDIR", "INCLUDE_DIR", "DOC",      "MAN",        "SHARE",   "DATADIR",
    "SRC",         "SOURCE_DIR", "VERSION",    "VER",         "MODULE",   "MODULEFILE", "LICENSE"};

/// Kubernetes gives containers KEDGE_SERVICE_HOST, KEDGE_PORT, KEDGE_PORT_80_TCP_ADDR and the like for a service called
/// kedge, and KEDGE_X_SERVICE_HOST for one called kedge-x.
bool is_kubernetes_variable(std::string_view word) {
  const auto has = [&](std::string_view part) {
    return word.starts_with(part) || word.find(compose("_{}", part)) != std::string_view::npos;
  };
  return has("SERVICE_HOST") || has("SERVICE_PORT") || has("PORT_") || word == "PORT" || word.ends_with("_PORT");
}

/// Variables that start with KEDGE_ and are not options: read elsewhere, used by scripts, or set by module files.
bool is_other_variable(std::string_view name) {
  const std::string_view word = name.substr(std::string_view("KEDGE_").size());
  return word == "CONFIG" || word == "NODE" || word.starts_with("TEST_") || word.starts_with("BUILD_") ||
         is_kubernetes_variable(word) || std::ranges::find(kModuleFileVariables, word) != kModuleFileVariables.end();
}

void apply_variable(LoadedOptions& loaded, const std::string& name, const std::string& value) {
  for (const OptionField& field : option_fields()) {
    if (variable_name(field) == name) return assign(loaded, field, value, name);
  }
  if (is_other_variable(name)) return;
  if (const auto advice = describe_removed_variable(name)) refuse(ErrorCode::invalid_argument, *advice);
  std::vector<std::string> known;
  for (const OptionField& field : option_fields()) known.push_back(variable_name(field));
  refuse(ErrorCode::invalid_argument, compose("unknown environment variable {}{}", name, suggestion_text(name, known)));
}

std::optional<std::string> find_variable(const std::vector<std::string>& environment, std::string_view name) {
  for (const std::string& entry : environment) {
    if (entry.starts_with(name) && entry.size() > name.size() && entry[name.size()] == '=') {
      return entry.substr(name.size() + 1);
    }
  }
  return std::nullopt;
}

/// Once all are known: HOME and others may be set in any order.
void expand_paths(LoadedOptions& loaded, const std::vector<std::string>& environment) {
  const auto variable = [&](const std::string& name) { return find_variable(environment, name); };
  for (const OptionField& field : option_fields()) {
    if (!is_path(field)) continue;
    const std::string text = field.get(loaded.options);
    if (!is_expandable(text)) continue;
    try {
      (void)field.set(loaded.options, expand_path(text, variable));
    } catch (const Error& error) {
      const std::string name = dotted_name(field);
      refuse(ErrorCode::invalid_argument, compose("{}: {}: {}", loaded.origin[name], name, error.failure().message));
    }
  }
}

const OptionField& require_field(std::string_view name) {
  std::vector<std::string> known;
  for (const OptionField& field : option_fields()) {
    known.push_back(dotted_name(field));
    if (known.back() == name) return field;
  }
  if (const auto advice = describe_removed_option(name)) throw Error(ErrorCode::invalid_argument, *advice);
  const auto meant = nearest_name(name, known);
  throw Error(ErrorCode::invalid_argument,
              compose("there is no option {}{}", name,
                      meant ? compose("; did you mean {}?", *meant) : "; share/kedge/kedge.toml lists all options"));
}

}  // namespace

LoadedOptions load_options(const std::vector<std::string>& environment, const std::string& directory) {
  LoadedOptions loaded;
  for (const OptionField& field : option_fields()) loaded.origin[dotted_name(field)] = "default";
  try {
    const auto config = find_variable(environment, "KEDGE_CONFIG");
    const bool named = config && !config->empty();
    apply_file(loaded, named ? *config : directory == "." ? "kedge.toml" : directory + "/kedge.toml", named);
    for (const std::string& entry : environment) {
      const std::size_t equals = entry.find('=');
      if (equals == std::string::npos || !entry.starts_with("KEDGE_")) continue;
      apply_variable(loaded, entry.substr(0, equals), entry.substr(equals + 1));
    }
    expand_paths(loaded, environment);
  } catch (const Error& error) {
    loaded.options.load_failure = error.failure();
  }
  return loaded;
}

std::vector<std::string> process_environment() {
  std::vector<std::string> entries;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) entries.emplace_back(*entry);
  return entries;
}

std::optional<std::string> process_variable(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

Options Options::load() noexcept {
  try {
    return load_options(process_environment(), ".").options;
  } catch (const std::exception&) {  // only memory can be missing here
    Options options;
    options.load_failure =
        Failure{ErrorCode::no_space, "out of memory while reading the options; give the job more memory"};
    return options;
  }
}

void set_option(Options& options, std::string_view name, std::string_view value) {
  const OptionField& field = require_field(name);
  Options changed = options;
  std::string meant(value);
  if (is_path(field)) {
    try {
      meant = expand_path(value, process_variable);
    } catch (const Error& error) {
      throw Error(ErrorCode::invalid_argument, compose("{}: {}", name, error.failure().message));
    }
  }
  if (!field.set(changed, meant) || !field.is_valid(changed)) {
    const std::string_view reason = is_utf8(value) ? "" : ", which is not UTF-8";
    throw Error(ErrorCode::invalid_argument,
                compose("{} must be {}, not \"{}\"{}", name, field.expects, value, reason));
  }
  options = std::move(changed);
}

std::string get_option(const Options& options, std::string_view name) { return require_field(name).get(options); }

}  // namespace kedge

// kedge config: the options of a job started here and now, and their sources.
#include <CLI/CLI.hpp>
#include <memory>

#include "base/json.hpp"
#include "base/options_fields.hpp"
#include "base/options_load.hpp"
#include "base/options_values.hpp"
#include "base/text.hpp"
#include "tools/outcome.hpp"
#include "tools/text_format.hpp"

namespace kedge::tools {
namespace {

// Values are stored as text, but JSON readers expect numbers.
Json value_json(const OptionField& field, const std::string& text) {
  switch (field.kind) {
    case FieldKind::flag: return text == "true";
    case FieldKind::count:
    case FieldKind::size:
    case FieldKind::seconds: {
      const Json number = Json::parse(text, nullptr, /*allow_exceptions=*/false);
      return number.is_number() ? number : Json(text);
    }
    case FieldKind::paths: return split_paths(text);
    case FieldKind::text:
    case FieldKind::time:
    case FieldKind::choice: break;
  }
  return text;
}

std::string value_cell(const OptionField& field, const std::string& text) {
  const bool plain = field.kind != FieldKind::text && field.kind != FieldKind::time && field.kind != FieldKind::paths;
  return plain ? text : compose("\"{}\"", printable(text));
}

Outcome config(bool json) {
  const LoadedOptions loaded = load_options(process_environment(), ".");
  if (loaded.options.load_failure) throw Error(*loaded.options.load_failure);
  Table table("lln");  // one line per option, for grep
  table.add({"option", "value", "from"});
  Json values = Json::object();
  for (const OptionField& field : option_fields()) {
    const std::string name = dotted_name(field);
    const std::string text = field.get(loaded.options);
    const std::string& origin = loaded.origin.at(name);
    table.add({name, value_cell(field, text), printable(origin)});
    values[name] = {{"value", value_json(field, text)},
                    {"from", origin},
                    {"variable", variable_name(field)},
                    {"expects", field.expects},
                    {"same_on_all_ranks", field.scope == Scope::all_ranks}};
  }
  print(json ? json_text({{"options", values}}) : table.text());
  return Outcome::ok;
}

}  // namespace

Command add_config(CLI::App& program) {
  auto json = std::make_shared<bool>(false);
  CLI::App* parser = program.add_subcommand("config", "Every option with its current value and where that was set");
  parser->add_flag("--json", *json, "JSON output for programs");
  parser->footer(
      "Options come from the defaults, then the file named by KEDGE_CONFIG or else ./kedge.toml, then environment "
      "variables "
      "KEDGE_<SECTION>_<KEY>. Values that a program sets in kedge::Options are not shown.\n"
      "Exit status: 0, or 2 if a value is invalid.");
  return {parser, [json] { return config(*json); }};
}

}  // namespace kedge::tools

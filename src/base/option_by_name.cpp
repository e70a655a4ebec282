#include "base/option_by_name.hpp"

#include <utility>
#include <vector>

#include "base/expand_path.hpp"
#include "base/options_fields.hpp"
#include "base/options_load.hpp"
#include "base/removed_options.hpp"
#include "base/suggest.hpp"
#include "base/text.hpp"
#include "base/utf8.hpp"
#include "kedge/error.hpp"

namespace kedge {
namespace {

const Field& field_of(std::string_view name) {
  std::vector<std::string> known;
  for (const Field& field : option_fields()) {
    known.push_back(dotted_name(field));
    if (known.back() == name) return field;
  }
  if (const auto advice = describe_removed_option(name)) throw Error(ErrorCode::invalid_argument, *advice);
  const auto meant = nearest(name, known);
  throw Error(ErrorCode::invalid_argument,
              compose("there is no option {}{}", name,
                      meant ? compose("; did you mean {}?", *meant) : "; share/kedge/kedge.toml lists all options"));
}

}  // namespace

void set_option(Options& options, std::string_view name, std::string_view value) {
  const Field& field = field_of(name);
  Options changed = options;
  std::string meant(value);
  if (is_path(field)) {
    try {
      meant = expand_path(value, process_variable);
    } catch (const Error& error) {
      throw Error(ErrorCode::invalid_argument, compose("{}: {}", name, error.failure().message));
    }
  }
  if (!field.set(changed, meant) || !field.valid(changed)) {
    const std::string_view reason = is_utf8(value) ? "" : ", which is not UTF-8";
    throw Error(ErrorCode::invalid_argument,
                compose("{} must be {}, not \"{}\"{}", name, field.expects, value, reason));
  }
  options = std::move(changed);
}

std::string get_option(const Options& options, std::string_view name) { return field_of(name).get(options); }

}  // namespace kedge

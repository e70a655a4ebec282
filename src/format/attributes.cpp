#include "format/attributes.hpp"

#include <algorithm>
#include <cmath>

#include "base/json.hpp"
#include "base/text.hpp"
#include "format/fields.hpp"
#include "format/region_spec.hpp"

namespace kedge::format {
namespace {

std::optional<std::string> problem_of(const AttributeValue& value) {
  if (const auto* number = std::get_if<double>(&value); number != nullptr && !std::isfinite(*number)) {
    return "its value is not finite, which JSON cannot represent; pass it as text";
  }
  if (const auto* text = std::get_if<std::string>(&value); text != nullptr && !is_utf8(*text)) {
    return "its text is not UTF-8";
  }
  if (const auto* numbers = std::get_if<std::vector<double>>(&value)) {
    const auto bad = std::ranges::find_if_not(*numbers, [](double number) { return std::isfinite(number); });
    if (bad != numbers->end()) {
      return kedge::compose("its element {} is not finite, which JSON cannot represent", bad - numbers->begin());
    }
  }
  return std::nullopt;
}

std::optional<std::string> problem_of(const std::string& key) {
  if (key.empty()) return "it is empty";
  if (key.size() > kAttributeKeyBytesMax) return kedge::compose("it is longer than {} bytes", kAttributeKeyBytesMax);
  if (!is_utf8(key)) return "it is not UTF-8";
  return std::nullopt;
}

std::optional<std::string> problem_of(const Attributes& attributes) {
  for (const auto& [key, value] : attributes) {
    if (const auto problem = problem_of(key)) {
      return kedge::compose("invalid attribute key '{}': {}", printable_name(key), *problem);
    }
    if (const auto problem = problem_of(value)) {
      return kedge::compose("attribute '{}' cannot be stored: {}", printable_name(key), *problem);
    }
  }
  const std::size_t size = encode_attributes(attributes).size();
  if (size <= kAttributesBytesMax) return std::nullopt;
  return kedge::compose("the attributes take {} bytes as JSON, the maximum is {}; save large ones as regions", size,
                        kAttributesBytesMax);
}

[[noreturn]] void refuse_value(std::string_view path, std::string_view key) {
  throw_corrupt(path,
                kedge::compose("attribute '{}' is not a number, text or array of numbers as Kedge writes them; the "
                               "file is damaged",
                               printable_name(key)));
}

std::int64_t whole_number(const Json& value, std::string_view path, std::string_view key) {
  // JSON's unsigned numbers above int64's maximum become negative.
  const auto number = value.get<std::int64_t>();
  if (value.is_number_unsigned() && number < 0) refuse_value(path, key);
  return number;
}

AttributeValue array_of(const Json& values, std::string_view path, std::string_view key) {
  const bool numbers = std::ranges::all_of(values, [](const Json& value) { return value.is_number(); });
  if (!numbers) refuse_value(path, key);
  if (std::ranges::any_of(values, [](const Json& value) { return value.is_number_float(); })) {
    return values.get<std::vector<double>>();
  }
  std::vector<std::int64_t> whole;
  for (const Json& value : values) whole.push_back(whole_number(value, path, key));
  return whole;
}

AttributeValue value_of(const Json& value, std::string_view path, std::string_view key) {
  if (value.is_number_float()) return value.get<double>();
  if (value.is_number()) return whole_number(value, path, key);
  if (value.is_string()) return value.get<std::string>();
  if (value.is_array()) return array_of(value, path, key);
  refuse_value(path, key);
}

}  // namespace

std::optional<Failure> check_attributes(const Attributes& attributes) {
  auto problem = problem_of(attributes);
  if (!problem) return std::nullopt;
  return Failure{ErrorCode::invalid_argument, *std::move(problem)};
}

std::string encode_attributes(const Attributes& attributes) {
  Json object = Json::object();
  for (const auto& attribute : attributes) {
    std::visit([&](const auto& value) { object[attribute.first] = value; }, attribute.second);
  }
  return object.dump();
}

Attributes decode_attributes(std::string_view text, std::string_view path) {
  if (text.size() > kAttributesBytesMax) throw_corrupt(path, "the attributes are too long; the file is damaged");
  const Json object = Json::parse(text, nullptr, false);
  if (!object.is_object()) throw_corrupt(path, "the attributes are not a JSON object; the file is damaged");
  Attributes attributes;
  for (const auto& [key, value] : object.items()) attributes.emplace(key, value_of(value, path, key));
  if (const auto problem = problem_of(attributes)) throw_corrupt(path, *problem + "; the file is damaged");
  return attributes;
}

}  // namespace kedge::format

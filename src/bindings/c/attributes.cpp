#include "bindings/c/attributes.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <vector>

#include "base/text.hpp"
#include "bindings/c/failure.hpp"
#include "bindings/c/handle.hpp"

namespace kedge::bindings {
namespace {

static_assert(sizeof(kedge_attribute) == 4 * sizeof(void*), "compiled into programs");

template <class Number>
AttributeValue numbers(const kedge_attribute& given) {
  const auto* first = static_cast<const Number*>(given.value);
  if (given.count == 1) return *first;
  return std::vector<Number>(first, first + given.count);
}

AttributeValue value_of(const kedge_attribute& given) {
  const bool is_text = given.type == KEDGE_ATTRIBUTE_STRING;
  if (given.value == nullptr && (is_text || given.count != 0)) {
    throw_argument(compose("the value of attribute {} must not be NULL", given.key));
  }
  if (given.type == KEDGE_ATTRIBUTE_INT64) return numbers<std::int64_t>(given);
  if (given.type == KEDGE_ATTRIBUTE_DOUBLE) return numbers<double>(given);
  if (is_text) return std::string(static_cast<const char*>(given.value));
  throw_argument(compose("attribute {} has unknown type {}; use one of kedge_attribute_type", given.key,
                         static_cast<int>(given.type)));
}

constexpr std::array kTypeNames = {"an int64", "a double", "a string", "an array of int64", "an array of double"};

[[noreturn]] void refuse_type(AttributeQuery asked, const AttributeValue& value) {
  throw Error(ErrorCode::mismatch, compose("attribute {} is {}, which {} does not return", asked.key,
                                           kTypeNames.at(value.index()), asked.call));
}

template <class Number>
void give_numbers(const AttributeValue& value, AttributeQuery asked, Number* place, std::size_t capacity,
                  std::size_t* count) {
  std::span<const Number> numbers;
  if (const auto* one = std::get_if<Number>(&value)) numbers = {one, 1};
  else if (const auto* several = std::get_if<std::vector<Number>>(&value)) numbers = *several;
  else refuse_type(asked, value);
  std::ranges::copy(numbers.first(std::min(capacity, numbers.size())), place);
  if (count != nullptr) *count = numbers.size();
}

}  // namespace

Attributes attributes_of(const kedge_attribute* given, std::size_t count) {
  if (given == nullptr && count != 0) {
    throw_argument(compose("kedge_create: attributes must not be NULL if attribute_count is {}", count));
  }
  Attributes attributes;
  for (const kedge_attribute& attribute : std::span(given, count)) {
    if (attribute.key == nullptr) throw_argument("the key of an attribute must not be NULL");
    if (!attributes.emplace(attribute.key, value_of(attribute)).second) {
      throw_argument(compose("attribute {} appears twice; use each key once", attribute.key));
    }
  }
  return attributes;
}

void copy_value(const AttributeValue& value, AttributeQuery asked, std::int64_t* place, std::size_t capacity,
                std::size_t* count) {
  give_numbers(value, asked, place, capacity, count);
}

void copy_value(const AttributeValue& value, AttributeQuery asked, double* place, std::size_t capacity,
                std::size_t* count) {
  give_numbers(value, asked, place, capacity, count);
}

void copy_value(const AttributeValue& value, AttributeQuery asked, char* place, std::size_t capacity,
                std::size_t* count) {
  const auto* text = std::get_if<std::string>(&value);
  if (text == nullptr) refuse_type(asked, value);
  copy_text(*text, place, capacity, count);
}

}  // namespace kedge::bindings

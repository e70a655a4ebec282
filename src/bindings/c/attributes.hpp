// Attributes between C's arrays and the engine's map.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kedge/attributes.hpp"
#include "kedge/kedge.h"

namespace kedge::bindings {

/// Attributes from C's array. Throws Error{invalid_argument} for null pointers, an unknown type, a key given twice.
[[nodiscard]] Attributes attributes_of(const kedge_attribute* given, std::size_t count);

/// Who asks for which attribute, for messages.
struct AttributeQuery {
  const char* call;
  const char* key;
};

/// Up to `capacity` numbers to `place`, and how many there are to `count` if it is not null; of a string, `capacity`
/// bytes with the closing zero and its length. Throws Error{mismatch} if the value is of another type.
void copy_value(const AttributeValue& value, AttributeQuery asked, std::int64_t* place, std::size_t capacity,
                std::size_t* count);
void copy_value(const AttributeValue& value, AttributeQuery asked, double* place, std::size_t capacity,
                std::size_t* count);
void copy_value(const AttributeValue& value, AttributeQuery asked, char* place, std::size_t capacity,
                std::size_t* count);

}  // namespace kedge::bindings

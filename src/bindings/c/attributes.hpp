// Converts attributes between C arrays and the engine's map.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kedge/attributes.hpp"
#include "kedge/kedge.h"

namespace kedge::bindings {

/// Throws Error{invalid_argument} for null pointers, unknown types and duplicate keys.
[[nodiscard]] Attributes attributes_of(const kedge_attribute* given, std::size_t count);

/// The call and key, for messages.
struct AttributeQuery {
  const char* call;
  const char* key;
};

/// Copies up to `capacity` numbers to `place` and stores their total number in `count` unless it is null; of a string,
/// `capacity` bytes including the final zero, and its length. Throws Error{mismatch} if the value has another type.
void copy_value(const AttributeValue& value, AttributeQuery asked, std::int64_t* place, std::size_t capacity,
                std::size_t* count);
void copy_value(const AttributeValue& value, AttributeQuery asked, double* place, std::size_t capacity,
                std::size_t* count);
void copy_value(const AttributeValue& value, AttributeQuery asked, char* place, std::size_t capacity,
                std::size_t* count);

}  // namespace kedge::bindings

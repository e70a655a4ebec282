// Reads the subset of CBOR that an index is written in (RFC 8949, definite lengths), value by value. Not by the JSON
// library: that one follows nesting by recursion, so a planted file of brackets could exhaust the stack.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace kedge::format {

/// Each call reads the next value, which must be of that kind, and otherwise throws Error{corrupt} with `path`.
/// Nothing is copied: results point into the bytes.
class CborReader {
 public:
  CborReader(std::span<const std::byte> bytes, std::string_view path) : rest_(bytes), path_(path) {}

  [[nodiscard]] std::uint64_t number();
  [[nodiscard]] std::string_view text();
  [[nodiscard]] std::span<const std::byte> bytes();
  /// How many values follow; at most as many as bytes are left.
  [[nodiscard]] std::uint64_t array();
  /// An array of exactly `count` values.
  void array_of(std::uint64_t count);
  [[nodiscard]] bool boolean();
  /// Takes a null, if the next value is one.
  [[nodiscard]] bool take_null();
  [[nodiscard]] bool next_is_array() const noexcept;
  /// Nothing may be left.
  void end() const;

 private:
  [[nodiscard]] std::uint64_t head(unsigned major);
  [[nodiscard]] std::span<const std::byte> take(std::uint64_t count);
  [[noreturn]] void refuse() const;

  std::span<const std::byte> rest_;
  std::string_view path_;
};

}  // namespace kedge::format

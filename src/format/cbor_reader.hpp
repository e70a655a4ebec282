// Reads the subset of CBOR that indexes are written in (RFC 8949, definite lengths). A JSON library's recursive parser
// would not do: deeply nested input from an attacker could exhaust the stack.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace kedge::format {

/// Each call reads the next value and throws Error{corrupt} with `path` if it is of another kind. Results point into
/// the bytes.
class CborReader {
 public:
  CborReader(std::span<const std::byte> bytes, std::string_view path) : rest_(bytes), path_(path) {}

  [[nodiscard]] std::uint64_t number();
  [[nodiscard]] std::string_view text();
  [[nodiscard]] std::span<const std::byte> bytes();
  /// The number of elements that follow; at most the number of bytes left.
  [[nodiscard]] std::uint64_t array();
  /// Requires an array of exactly `count` elements.
  void array_of(std::uint64_t count);
  [[nodiscard]] bool boolean();
  /// Skips a null; false if the next value is not one.
  [[nodiscard]] bool take_null();
  [[nodiscard]] bool next_is_array() const noexcept;
  /// Requires that nothing is left.
  void end() const;

 private:
  [[nodiscard]] std::uint64_t head(unsigned major);
  [[nodiscard]] std::span<const std::byte> take(std::uint64_t count);
  [[noreturn]] void refuse() const;

  std::span<const std::byte> rest_;
  std::string_view path_;
};

}  // namespace kedge::format

// Fields at fixed places of the first 4096 bytes of a file: little-endian, copied as they are.
#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "kedge/error.hpp"

namespace kedge::format {

template <class T>
void put(std::span<std::byte> bytes, std::size_t at, const T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  std::memcpy(bytes.subspan(at, sizeof(T)).data(), &value, sizeof(T));
}

template <class T>
[[nodiscard]] T get(std::span<const std::byte> bytes, std::size_t at) {
  static_assert(std::is_trivially_copyable_v<T>);
  T value{};
  std::memcpy(&value, bytes.subspan(at, sizeof(T)).data(), sizeof(T));
  return value;
}

/// Throws Error{corrupt} for the file at `path`.
[[noreturn]] inline void refuse(std::string_view path, std::string message) {
  throw Error(Failure{ErrorCode::corrupt, std::move(message), -1, std::string(path), 0});
}

}  // namespace kedge::format

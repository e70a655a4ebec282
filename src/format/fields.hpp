// Little-endian fields at fixed offsets of a file's first 4096 bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "base/text.hpp"
#include "kedge/error.hpp"

namespace kedge::format {

template <class T>
void put_field(std::span<std::byte> bytes, std::size_t at, const T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  std::memcpy(bytes.subspan(at, sizeof(T)).data(), &value, sizeof(T));
}

template <class T>
[[nodiscard]] T get_field(std::span<const std::byte> bytes, std::size_t at) {
  static_assert(std::is_trivially_copyable_v<T>);
  T value{};
  std::memcpy(&value, bytes.subspan(at, sizeof(T)).data(), sizeof(T));
  return value;
}

/// Throws Error{corrupt} for the file at `path`.
[[noreturn]] inline void throw_corrupt(std::string_view path, std::string message) {
  throw Error(Failure{ErrorCode::corrupt, std::move(message), -1, std::string(path), 0});
}

/// Returns the remedy if this Kedge cannot read files of that version. Before Kedge 1.0 it reads `ours` alone.
[[nodiscard]] inline std::optional<std::string> check_version(std::string_view format_name, std::uint64_t version,
                                                              std::uint64_t ours) {
  if (version == ours) return std::nullopt;
  const bool newer = version > ours;
  return kedge::compose("{} {} is {} than the one this Kedge reads ({}); use {}", format_name, version,
                        newer ? "newer" : "older", ours, newer ? "a newer Kedge" : "the Kedge that wrote it");
}

}  // namespace kedge::format

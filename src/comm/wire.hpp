// Messages of mixed content between processes of one job: values, texts and shapes, one behind the other. Never stored.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/invariant.hpp"
#include "kedge/error.hpp"
#include "kedge/types.hpp"

namespace kedge::comm {

/// Types that may be sent as they lie in memory: without padding, and without values that are only sometimes valid
/// (bool and enums have calls of their own).
template <class Value>
concept Plain =
    std::is_trivially_copyable_v<Value> && std::has_unique_object_representations_v<Value> && !std::is_enum_v<Value> &&
    !std::is_same_v<Value, bool> && !std::is_pointer_v<Value>;

/// Whether these records have no padding, so that every byte that is sent was set.
template <class... Records>
inline constexpr bool kHasNoPadding = (std::has_unique_object_representations_v<Records> && ...);

/// Packs a message. Throws BrokenInvariant for values that the receiver would refuse.
class Packer {
 public:
  template <Plain Value>
  void put(const Value& value) {
    append(std::as_bytes(std::span(&value, 1)));
  }
  void put(const char*) = delete;  ///< a pointer would convert to bool
  void put(bool value) { put(static_cast<std::uint8_t>(value ? 1 : 0)); }
  /// Packs an enum. `last` is its greatest value; it begins at 0 or 1 and has no gaps.
  template <class Enum>
  requires std::is_enum_v<Enum>
  void put(Enum value, Enum last) {
    invariant(value <= last, "an enum on the wire has one of its values");
    put(static_cast<std::underlying_type_t<Enum>>(value));
  }
  void put(std::string_view text) {
    invariant(text.size() <= std::numeric_limits<std::uint32_t>::max(), "a text on the wire has less than 4 GiB");
    put(static_cast<std::uint32_t>(text.size()));
    append(std::as_bytes(std::span(text)));
  }
  void put(const Shape& shape) {
    invariant(!shape.too_long(), "a shape on the wire has all of its dimensions");
    put(static_cast<std::uint8_t>(shape.dimensions()));
    append(std::as_bytes(shape.extents()));
  }

  [[nodiscard]] bool empty() const noexcept { return bytes_.empty(); }
  [[nodiscard]] std::vector<std::byte> take() { return std::exchange(bytes_, {}); }

 private:
  void append(std::span<const std::byte> bytes) { bytes_.insert(bytes_.end(), bytes.begin(), bytes.end()); }

  std::vector<std::byte> bytes_;
};

/// Unpacks a message in the order in which it was packed. Every call throws Error{io} if the message is too short, or
/// has a value that no sender packs.
class Unpacker {
 public:
  /// `bytes` must outlive it.
  explicit Unpacker(std::span<const std::byte> bytes) : bytes_(bytes) {}

  [[nodiscard]] bool empty() const noexcept { return bytes_.empty(); }

  template <Plain Value>
  [[nodiscard]] Value get() {
    std::array<std::byte, sizeof(Value)> bytes{};
    std::memcpy(bytes.data(), take_bytes(sizeof(Value)).data(), sizeof(Value));
    return std::bit_cast<Value>(bytes);
  }
  [[nodiscard]] bool get_bool() {
    const auto value = get<std::uint8_t>();
    require_valid(value <= 1);
    return value == 1;
  }
  /// Unpacks an enum with the range of Packer::put.
  template <class Enum>
  requires std::is_enum_v<Enum>
  [[nodiscard]] Enum get_enum(Enum last, Enum first = Enum{}) {
    const auto value = static_cast<Enum>(get<std::underlying_type_t<Enum>>());
    require_valid(first <= value && value <= last);
    return value;
  }
  [[nodiscard]] std::string get_text() {
    const auto size = get<std::uint32_t>();
    const auto bytes = take_bytes(size);
    std::string text(size, '\0');
    if (size != 0) std::memcpy(text.data(), bytes.data(), size);
    return text;
  }
  [[nodiscard]] Shape get_shape() {
    std::array<std::uint64_t, Shape::kMaxDimensions> extents{};
    const std::size_t dimensions = get<std::uint8_t>();
    require_valid(dimensions <= extents.size());
    for (std::size_t i = 0; i < dimensions; ++i) extents[i] = get<std::uint64_t>();
    return Shape(std::span<const std::uint64_t>(extents).first(dimensions));
  }

 private:
  static void require_valid(bool possible) {
    if (!possible) throw Error(ErrorCode::io, "a message between ranks was damaged on its way; check the network");
  }
  std::span<const std::byte> take_bytes(std::size_t count) {
    if (count > bytes_.size()) {
      throw Error(ErrorCode::io, "a message between ranks was cut short on its way; check the network");
    }
    const auto front = bytes_.first(count);
    bytes_ = bytes_.subspan(count);
    return front;
  }

  std::span<const std::byte> bytes_;
};

}  // namespace kedge::comm

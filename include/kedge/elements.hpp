// Element types of C++ values: numbers, arrays of numbers, structs with named members.
#pragma once

#include <array>
#include <complex>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "kedge/types.hpp"

namespace kedge {

/// The element type of a variable.
struct ElementType {
  DataType dtype = DataType::opaque;  ///< of its numbers
  Shape shape;                        ///< of one element: empty for a number, the size of a struct
  std::string_view members;           ///< of a described struct; static storage
  bool is_struct = false;             ///< the last extent is a struct's size
};

template <class T>
[[nodiscard]] const ElementType& element_type();

namespace detail {

template <class T>
inline constexpr bool is_number = std::is_same_v<T, std::byte> || std::is_same_v<T, std::complex<float>> ||
                                  std::is_same_v<T, std::complex<double>> || std::is_same_v<T, float> ||
                                  std::is_same_v<T, double> || (std::is_integral_v<T> && sizeof(T) <= 8);

template <class T>
inline constexpr bool is_std_array = false;
template <class T, std::size_t n>
inline constexpr bool is_std_array<std::array<T, n>> = true;

/// Types that refer to elements elsewhere: a span and its derived classes, a string_view, a range's view, a
/// reference_wrapper.
template <class T>
concept DerivedFromSpan = requires(T& value) {
  []<class U, std::size_t n>(std::span<U, n>&) {}(value);
};
template <class T>
inline constexpr bool is_reference_wrapper = false;
template <class T>
inline constexpr bool is_reference_wrapper<std::reference_wrapper<T>> = true;
template <class T>
inline constexpr bool is_view = is_reference_wrapper<T> || DerivedFromSpan<T> ||
                                std::ranges::enable_borrowed_range<T> || std::ranges::enable_view<T>;

/// The extents {first, rest...}; marked too_long if there are too many.
[[nodiscard]] Shape prepend(std::uint64_t first, const Shape& rest);

/// Appends "name:dtype[extents]@offset" to the text that describes a struct.
void append_member(std::string& text, std::string_view name, const ElementType& type, std::size_t offset);

template <class Struct, class Member>
void append_members(std::string& text, const Struct& sample, std::string_view name, Member Struct::*member) {
  static_assert(!std::is_pointer_v<Member>,
                "an address means nothing to another process, so a pointer cannot be described: save what it points "
                "to by itself");
  const auto* begin = reinterpret_cast<const std::byte*>(std::addressof(sample));
  const auto* here = reinterpret_cast<const std::byte*>(std::addressof(sample.*member));
  append_member(text, name, element_type<Member>(), static_cast<std::size_t>(here - begin));
}
template <class Struct, class Member, class... Rest>
void append_members(std::string& text, const Struct& sample, std::string_view name, Member Struct::*member,
                    Rest... rest) {
  append_members(text, sample, name, member);
  append_members(text, sample, rest...);
}

template <class T>
concept Described = requires(const T* type) {
  { kedge_members(type) } -> std::convertible_to<std::string>;
};

template <class T>
ElementType make_element_type() {
  if constexpr (is_number<T>) {
    return {kDataType<T>, Shape{}, {}, false};
  } else if constexpr (std::is_enum_v<T>) {
    return {kDataType<std::underlying_type_t<T>>, Shape{}, {}, false};
  } else if constexpr (is_std_array<T> || std::is_array_v<T>) {
    using Inner = std::remove_cvref_t<decltype(std::declval<T&>()[0])>;
    const ElementType& inner = element_type<Inner>();
    return {inner.dtype, prepend(sizeof(T) / sizeof(Inner), inner.shape), inner.members, inner.is_struct};
  } else {
    static_assert(!std::is_pointer_v<T>, "an address means nothing to another process: save what it points to");
    static_assert(std::is_class_v<T> && std::is_trivially_copyable_v<T>,
                  "Kedge saves numbers, enums, arrays and trivially copyable structs, and contiguous "
                  "containers (with data() and size()) of these; this type is none of them");
    static_assert(!is_view<T>,
                  "this type refers to elements that lie elsewhere, and only the reference would be saved: save "
                  "the elements themselves");
    if constexpr (Described<T>) {
      static_assert(std::is_standard_layout_v<T>,
                    "a struct that is described must have all its members in one class and with one access: members of "
                    "several bases have no place that could be described");
      static const std::string members = kedge_members(static_cast<const T*>(nullptr));
      return {DataType::opaque, Shape{sizeof(T)}, members, true};
    } else {
      return {DataType::opaque, Shape{sizeof(T)}, {}, true};
    }
  }
}

}  // namespace detail

/// Describes the members of a struct, for a function `kedge_members` in the struct's namespace; members that are left
/// out are saved, but not named:
///
///     struct Particle { double position[3]; std::int64_t id; };
///     inline std::string kedge_members(const Particle*) {
///       return kedge::members("position", &Particle::position, "id", &Particle::id);
///     }
///
/// Other HDF5 readers then see a compound type with these members; without a description, uninterpreted bytes. A
/// checkpoint of a struct with another description, or none, is a `mismatch`. Names are 1 to 63 of A-Z a-z 0-9 _, each
/// once, in the order of the members in memory; the whole text has at most 4096 bytes. Members are numbers, enums, and
/// arrays of these; a struct in a struct is saved as uninterpreted bytes, whose meaning is not checked. The struct must
/// have a default constructor and standard layout: members of several bases cannot be described.
template <class Struct, class Member, class... Rest>
[[nodiscard]] std::string members(std::string_view name, Member Struct::*member, Rest... rest) {
  const Struct sample{};
  std::string text;
  detail::append_members(text, sample, name, member, rest...);
  return text;
}

/// Element type of a vector of T, or of one T. Static storage.
template <class T>
const ElementType& element_type() {
  static const ElementType type = detail::make_element_type<std::remove_cv_t<T>>();
  return type;
}

}  // namespace kedge

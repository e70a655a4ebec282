// Makes the rows of the table of options from members of Options.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/options_fields.hpp"
#include "base/options_values.hpp"
#include "base/text.hpp"
#include "kedge/options.hpp"

namespace kedge::options_table {

/// Each enumerator of an option that is a choice, and its configuration word.
template <class E>
inline constexpr auto kEnumWords = nullptr;
template <>
inline constexpr auto kEnumWords<LogLevel> = std::array{
    std::pair{LogLevel::debug, "debug"}, std::pair{LogLevel::info, "info"}, std::pair{LogLevel::warning, "warning"},
    std::pair{LogLevel::error, "error"}, std::pair{LogLevel::off, "off"}};
template <>
inline constexpr auto kEnumWords<StartMode> =
    std::array{std::pair{StartMode::continue_, "continue"}, std::pair{StartMode::fresh, "fresh"},
               std::pair{StartMode::adopt, "adopt"}, std::pair{StartMode::accept, "accept"},
               std::pair{StartMode::adopt_and_accept, "adopt_and_accept"}};
template <>
inline constexpr auto kEnumWords<OnExit> =
    std::array{std::pair{OnExit::keep, "keep"}, std::pair{OnExit::remove_if_persistent, "remove_if_persistent"},
               std::pair{OnExit::remove, "remove"}};
template <>
inline constexpr auto kEnumWords<Verify> = std::array{
    std::pair{Verify::all, "all"}, std::pair{Verify::loaded, "loaded"}, std::pair{Verify::headers, "headers"}};
template <>
inline constexpr auto kEnumWords<OtherRanks> =
    std::array{std::pair{OtherRanks::accept, "accept"}, std::pair{OtherRanks::refuse, "refuse"}};
template <>
inline constexpr auto kEnumWords<Io> =
    std::array{std::pair{Io::automatic, "auto"}, std::pair{Io::buffered, "buffered"}, std::pair{Io::direct, "direct"}};
template <>
inline constexpr auto kEnumWords<DevicePath> =
    std::array{std::pair{DevicePath::automatic, "auto"}, std::pair{DevicePath::buffers, "buffers"},
               std::pair{DevicePath::gds, "gds"}};
template <>
inline constexpr auto kEnumWords<PipelineMode> =
    std::array{std::pair{PipelineMode::automatic, "auto"}, std::pair{PipelineMode::inline_, "inline"},
               std::pair{PipelineMode::background, "background"}};
template <>
inline constexpr auto kEnumWords<WhenFull> =
    std::array{std::pair{WhenFull::block, "block"}, std::pair{WhenFull::fail, "fail"}};
template <>
inline constexpr auto kEnumWords<Messages> = std::array{
    std::pair{Messages::automatic, "auto"}, std::pair{Messages::mpi, "mpi"}, std::pair{Messages::tcp, "tcp"}};
template <>
inline constexpr auto kEnumWords<Trust> =
    std::array{std::pair{Trust::self, "self"}, std::pair{Trust::group, "group"}, std::pair{Trust::any, "any"}};
template <>
inline constexpr auto kEnumWords<Scheme> =
    std::array{std::pair{Scheme::automatic, "auto"}, std::pair{Scheme::single, "single"},
               std::pair{Scheme::partner, "partner"}, std::pair{Scheme::xor_, "xor"}, std::pair{Scheme::rs, "rs"}};

using Paths = std::vector<std::string>;

template <class T>
std::string to_text(const T& value) {
  if constexpr (std::is_same_v<T, Paths>) {
    return join_paths(value);
  } else if constexpr (std::is_enum_v<T>) {
    for (const auto& [word_value, word] : kEnumWords<T>) {
      if (word_value == value) return word;
    }
    return compose("{}", static_cast<unsigned>(value));
  } else {
    return compose("{}", value);
  }
}

template <class T>
std::optional<T> parse_value(std::string_view text, FieldKind kind) {
  if constexpr (std::is_same_v<T, std::string>) {
    return std::string(text);
  } else if constexpr (std::is_same_v<T, Paths>) {
    return split_paths(text);
  } else if constexpr (std::is_same_v<T, bool>) {
    if (text == "true" || text == "1") return true;
    if (text == "false" || text == "0") return false;
    return std::nullopt;
  } else if constexpr (std::is_enum_v<T>) {
    for (const auto& [value, word] : kEnumWords<T>) {
      if (text == word) return value;
    }
    return std::nullopt;
  } else if constexpr (std::is_same_v<T, std::uint64_t>) {
    return kind == FieldKind::size ? parse_size(text) : parse_number<T>(text);
  } else {
    return parse_number<T>(text);
  }
}

template <class T>
constexpr FieldKind field_kind_of() {
  if constexpr (std::is_same_v<T, std::string>) return FieldKind::text;
  else if constexpr (std::is_same_v<T, Paths>) return FieldKind::paths;
  else if constexpr (std::is_same_v<T, bool>) return FieldKind::flag;
  else if constexpr (std::is_enum_v<T>) return FieldKind::choice;
  else if constexpr (std::is_floating_point_v<T>) return FieldKind::seconds;
  else return FieldKind::count;
}

struct AnyValidValue {
  template <class T>
  bool operator()(const T& value) const {
    if constexpr (std::is_enum_v<T>) {
      return std::ranges::any_of(kEnumWords<T>, [&](const auto& word) { return word.first == value; });
    }
    return true;
  }
};

struct OptionName {
  std::string_view section;
  std::string_view key;
};

// `Member` returns the value in Options, `Valid` says whether it is permitted; neither has state, so plain function
// pointers do. NOLINTNEXTLINE(bugprone-easily-swappable-parameters): two sentences, read in the table
template <FieldKind kSpecial = FieldKind::text, class Member, class Valid = AnyValidValue>
OptionField field(OptionName name, Member /*member*/, Scope scope, std::string_view expects, Valid /*valid*/ = {}) {
  using T = std::remove_cvref_t<decltype(Member{}(std::declval<Options&>()))>;
  static constexpr FieldKind kKind = kSpecial == FieldKind::text ? field_kind_of<T>() : kSpecial;
  return {name.section,
          name.key,
          kKind,
          scope,
          expects,
          [](const Options& options) { return to_text(Member{}(options)); },
          [](Options& options, std::string_view text) {
            std::optional<T> value = parse_value<T>(text, kKind);
            if (!value) return false;
            Member{}(options) = std::move(*value);
            return true;
          },
          [](const Options& options) { return Valid{}(Member{}(options)); }};
}

}  // namespace kedge::options_table

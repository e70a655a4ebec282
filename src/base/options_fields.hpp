// The one table of all options. TOML, environment, suggestions, checks and the vote on equal options read it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kedge/options.hpp"

namespace kedge {

/// Whether all ranks must have one value; then the option takes part in the vote on equal options.
enum class Scope : std::uint8_t { all_ranks, each_rank };

/// The form of a value in TOML and in an environment variable.
enum class FieldKind : std::uint8_t {
  text,
  time,     ///< TOML: text, a whole number of seconds since 1970, or a date with a time
  paths,    ///< TOML: an array of texts; environment: paths separated by colons
  flag,     ///< true, false
  count,    ///< a whole number
  size,     ///< bytes: a whole number, or text with KiB, MiB, GiB or TiB behind it
  seconds,  ///< a number, fractions allowed
  choice,   ///< text, one of a few words
};

/// One option. Values travel as text, in the spelling of the environment.
struct OptionField {
  std::string_view section;  ///< empty: top level
  std::string_view key;
  FieldKind kind;
  Scope scope;
  std::string_view expects;  ///< completes "must be ..."; share/kedge/kedge.toml explains the option
  std::string (*get)(const Options&);
  /// Sets the option. Returns false, and changes nothing, if the text is not a value of this kind.
  bool (*set)(Options&, std::string_view);
  /// Whether the value lies in the permitted range.
  bool (*is_valid)(const Options&);
};

/// Returns all options.
[[nodiscard]] std::span<const OptionField> option_fields();

/// Returns "store.path", or "run" for an option at top level.
[[nodiscard]] std::string dotted_name(const OptionField& field);
/// Returns the option's environment variable: "KEDGE_STORE_PATH", "KEDGE_RUN".
[[nodiscard]] std::string variable_name(const OptionField& field);
[[nodiscard]] std::string variable_name(std::string_view dotted);

/// Whether the option is a path, in which ~ and $NAME are expanded. Pure.
[[nodiscard]] bool is_path(const OptionField& field) noexcept;

/// Returns invalid_argument with the first option whose value is out of range; nothing if all are valid.
[[nodiscard]] std::optional<Failure> check_options(const Options& options);

/// One option's value as 64 bits, to be compared between ranks without sending it.
struct FieldDigest {
  std::string name;
  std::uint64_t hash = 0;
};

/// Returns a hash of every option that must be equal on all ranks, in one order everywhere.
[[nodiscard]] std::vector<FieldDigest> option_digests(const Options& options);

}  // namespace kedge

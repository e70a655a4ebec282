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

/// Who may differ: an option that must be the same on all ranks takes part in the vote on equal options.
enum class Scope : std::uint8_t { all_ranks, each_rank };

/// How a value is written in TOML and in an environment variable.
enum class FieldKind : std::uint8_t {
  text,
  time,     ///< TOML: text, a whole number of seconds since 1970, or a date with a time
  paths,    ///< TOML: an array of texts; environment: separated by colons
  flag,     ///< true, false
  count,    ///< a whole number
  size,     ///< bytes: a whole number, or text with KiB, MiB, GiB or TiB behind it
  seconds,  ///< a number, fractions allowed
  choice,   ///< text, one of a few words
};

/// One option. Values travel as text, in the spelling of the environment.
struct Field {
  std::string_view section;  ///< empty: top level
  std::string_view key;
  FieldKind kind;
  Scope scope;
  std::string_view expects;  ///< completes "must be ..."; what the option means is said in share/kedge/kedge.toml
  std::string (*get)(const Options&);
  /// False if the text is no value of this kind; the options are then unchanged.
  bool (*set)(Options&, std::string_view);
  /// Whether the value lies in the permitted range.
  bool (*valid)(const Options&);
};

[[nodiscard]] std::span<const Field> option_fields();

/// "store.path", or "run" at top level.
[[nodiscard]] std::string dotted_name(const Field& field);
/// "KEDGE_STORE_PATH", "KEDGE_RUN".
[[nodiscard]] std::string variable_name(const Field& field);
[[nodiscard]] std::string variable_name(std::string_view dotted);

/// Pure. Whether it is a path, in which ~ and $NAME are expanded.
[[nodiscard]] bool is_path(const Field& field) noexcept;

/// Local. The first option whose value is out of range, as invalid_argument that names it.
[[nodiscard]] std::optional<Failure> check(const Options& options);

/// One option's value as 64 bits, to be compared between ranks without sending it.
struct FieldDigest {
  std::string name;
  std::uint64_t hash = 0;
};

/// Every option that must be the same on all ranks, in the same order everywhere.
[[nodiscard]] std::vector<FieldDigest> digest(const Options& options);

}  // namespace kedge

// The attributes that a manifest shows as HDF5's own, for other readers. Kedge itself reads the JSON text beside them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kedge/attributes.hpp"

namespace kedge::format {

/// One attribute of the manifest's root group: a form, which is HDF5's and stays, and room for a value, which every
/// commit overwrites.
struct Hdf5Attribute {
  enum class Kind : std::uint8_t { integer, number, text };  ///< int64, double, UTF-8 and a zero
  std::string key;
  Kind kind = Kind::integer;
  std::optional<std::uint64_t> count;  ///< elements of an array
  std::uint64_t room_bytes = 0;        ///< 0: an array without elements
  std::uint64_t offset = 0;            ///< of the value in the manifest, set by locate
};

/// In the order of keys, the attributes that are shown. Left out are those beyond the first 1,000, values of more than
/// 32,768 bytes, the zero of a text included (HDF5 takes 64 KiB with name and header), and keys with a NUL, which end
/// there for HDF5.
[[nodiscard]] std::vector<Hdf5Attribute> shown_attributes(const Attributes& attributes);

/// Whether `attributes` are shown by `shown` as well: same keys, types and lengths of arrays, no text longer than its
/// room.
[[nodiscard]] bool values_fit(std::span<const Hdf5Attribute> shown, const Attributes& attributes);

/// Value for the attribute at `index` that can be found in the file HDF5 made: its room long.
[[nodiscard]] std::vector<std::byte> marked_value(const Hdf5Attribute& attribute, std::size_t index);

/// Finds every marked value in a manifest as HDF5 made it, sets the offsets and clears the marks. Throws Error{io} if
/// one is not there exactly once.
void find_values(std::span<Hdf5Attribute> shown, std::span<std::byte> file);

/// Overwrites the values in `file`. Only for what fit() lets pass.
void write_values(std::span<const Hdf5Attribute> shown, const Attributes& attributes, std::span<std::byte> file);

}  // namespace kedge::format

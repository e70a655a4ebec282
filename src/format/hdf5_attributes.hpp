// Attributes of a manifest as HDF5 attributes, for other readers. Kedge reads the JSON text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kedge/attributes.hpp"

namespace kedge::format {

/// An attribute of the manifest's root group: HDF5 fixes its type and size; every commit overwrites its value.
struct Hdf5Attribute {
  enum class Kind : std::uint8_t { integer, number, text };  ///< int64, double, UTF-8 with a final zero
  std::string key;
  Kind kind = Kind::integer;
  std::optional<std::uint64_t> count;  ///< number of elements, if it is an array
  std::uint64_t capacity_bytes = 0;    ///< 0: an array without elements
  std::uint64_t offset = 0;            ///< position of the value in the manifest; locate_values sets it
};

/// The attributes to be shown, by key. Omits all after the first 1,000, values above 32,768 bytes with the final zero
/// of a text (HDF5 limits an attribute with name and header to 64 KiB), and keys with a NUL, at which HDF5 would end
/// them.
[[nodiscard]] std::vector<Hdf5Attribute> select_shown_attributes(const Attributes& attributes);

/// Whether the layout of `shown` can hold `attributes`: same keys, types and array lengths, and no text longer than its
/// space.
[[nodiscard]] bool can_hold_values(std::span<const Hdf5Attribute> shown, const Attributes& attributes);

/// A marked value as long as the attribute's space, by which locate_values recognizes attribute `index`.
[[nodiscard]] std::vector<std::byte> make_marked_value(const Hdf5Attribute& attribute, std::size_t index);

/// Finds every marked value in a manifest that HDF5 made, stores the offsets and clears the marks. Throws Error{io}
/// unless each occurs exactly once.
void locate_values(std::span<Hdf5Attribute> shown, std::span<std::byte> file);

/// Overwrites the values in `file`; can_hold_values() must hold.
void write_values(std::span<const Hdf5Attribute> shown, const Attributes& attributes, std::span<std::byte> file);

}  // namespace kedge::format

#include "format/hdf5_attributes.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <type_traits>
#include <variant>

#include "base/invariant.hpp"
#include "format/fields.hpp"

namespace kedge::format {
namespace {

using Kind = Hdf5Attribute::Kind;

constexpr std::size_t kShownMax = 1000;
constexpr std::uint64_t kValueBytesMax = 32768;
constexpr std::uint64_t kTextRoomMin = 64;

// Five bytes that occur in no name, type or address of a manifest; the attribute's number follows.
constexpr std::array kMark{std::byte{0xFE}, std::byte{0xC7}, std::byte{0x3A}, std::byte{0x91}, std::byte{0x5D}};
constexpr std::size_t kMarkBytes = 8;

Hdf5Attribute form_of(const std::string& key, const AttributeValue& value) {
  return std::visit(
      [&](const auto& held) -> Hdf5Attribute {
        using Held = std::decay_t<decltype(held)>;
        if constexpr (std::is_same_v<Held, std::int64_t>) return {key, Kind::integer, std::nullopt, sizeof held, 0};
        else if constexpr (std::is_same_v<Held, double>) return {key, Kind::number, std::nullopt, sizeof held, 0};
        else if constexpr (std::is_same_v<Held, std::string>) {
          const std::uint64_t room = std::bit_ceil(std::uint64_t{held.size()} + 1);  // a zero ends it
          return {key, Kind::text, std::nullopt, std::max(room, kTextRoomMin), 0};
        } else {
          // JSON does not keep the type of empty arrays: they are read back as int64, so they are shown as int64.
          const bool whole = std::is_same_v<Held, std::vector<std::int64_t>> || held.empty();
          return {key, whole ? Kind::integer : Kind::number, held.size(), 8 * held.size(), 0};
        }
      },
      value);
}

template <class Number>
void put_numbers(std::span<const Number> numbers, std::span<std::byte> room) {
  for (std::size_t i = 0; i < numbers.size(); ++i) put_field(room, i * sizeof(Number), numbers[i]);
}

void put_value(const AttributeValue& value, std::span<std::byte> room) {
  std::visit(
      [&](const auto& held) {
        using Held = std::decay_t<decltype(held)>;
        if constexpr (std::is_same_v<Held, std::string>) {
          std::ranges::fill(room, std::byte{0});
          std::ranges::copy(std::as_bytes(std::span(held)), room.begin());
        } else if constexpr (std::is_arithmetic_v<Held>) {
          put_field(room, 0, held);
        } else {
          put_numbers(std::span<const typename Held::value_type>(held), room);
        }
      },
      value);
}

[[noreturn]] void misplaced() {
  throw Error(ErrorCode::io,
              "HDF5 did not place the attributes where Kedge can overwrite their values; please report this");
}

}  // namespace

std::vector<Hdf5Attribute> select_shown_attributes(const Attributes& attributes) {
  std::vector<Hdf5Attribute> shown;
  for (const auto& [key, value] : attributes) {
    if (shown.size() == kShownMax) break;
    Hdf5Attribute form = form_of(key, value);
    if (key.find('\0') == std::string::npos && form.capacity_bytes <= kValueBytesMax) shown.push_back(std::move(form));
  }
  return shown;
}

bool can_hold_values(std::span<const Hdf5Attribute> shown, const Attributes& attributes) {
  return std::ranges::equal(shown, select_shown_attributes(attributes),
                            [](const Hdf5Attribute& has, const Hdf5Attribute& wanted) {
                              return has.key == wanted.key && has.kind == wanted.kind && has.count == wanted.count &&
                                     wanted.capacity_bytes <= has.capacity_bytes;
                            });
}

std::vector<std::byte> make_marked_value(const Hdf5Attribute& attribute, std::size_t index) {
  std::vector<std::byte> value(attribute.capacity_bytes);
  if (value.empty()) return value;
  std::ranges::copy(kMark, value.begin());
  for (std::size_t i = kMark.size(); i < kMarkBytes; ++i, index >>= 8U)
    value[i] = static_cast<std::byte>(index & 0xFFU);
  return value;
}

void locate_values(std::span<Hdf5Attribute> shown, std::span<std::byte> file) {
  const std::boyer_moore_horspool_searcher searcher(kMark.begin(), kMark.end(),
                                                    [](std::byte b) { return std::to_integer<std::size_t>(b); });
  std::size_t found = 0;
  for (auto at = std::search(file.begin(), file.end(), searcher); at != file.end();
       at = std::search(at, file.end(), searcher)) {
    const auto offset = static_cast<std::uint64_t>(at - file.begin());
    std::size_t index = 0;
    if (file.size() - offset < kMarkBytes) misplaced();
    for (std::size_t i = kMarkBytes; i-- > kMark.size();)
      index = index << 8U | std::to_integer<std::size_t>(at[static_cast<std::ptrdiff_t>(i)]);
    if (index >= shown.size() || shown[index].offset != 0 || file.size() - offset < shown[index].capacity_bytes)
      misplaced();
    const auto value = file.subspan(offset, shown[index].capacity_bytes);
    if (!std::ranges::equal(value, make_marked_value(shown[index], index))) misplaced();
    shown[index].offset = offset;
    std::ranges::fill(value, std::byte{0});
    ++found;
  }
  const auto wanted = std::ranges::count_if(shown, [](const auto& attribute) { return attribute.capacity_bytes != 0; });
  if (found != static_cast<std::size_t>(wanted)) misplaced();
}

void write_values(std::span<const Hdf5Attribute> shown, const Attributes& attributes, std::span<std::byte> file) {
  for (const Hdf5Attribute& attribute : shown) {
    const auto value = attributes.find(attribute.key);
    invariant(value != attributes.end(), "attributes are those that the manifest was laid out for");
    if (attribute.capacity_bytes != 0)
      put_value(value->second, file.subspan(attribute.offset, attribute.capacity_bytes));
  }
}

}  // namespace kedge::format

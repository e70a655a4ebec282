// Arrays whose elements are their own global indices, as ranks of any number saved them, and memory that another number
// of processes loads blocks into: what loads are tested with.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "arrays/load_all.hpp"
#include "checksum/crc32c.hpp"
#include "format/on_disk.hpp"
#include "harness/random_choices.hpp"

namespace kedge::arrays {

/// Elements are 64 bits: a number for the array, and the element's position in row-major order.
[[nodiscard]] inline std::uint64_t element_value(std::uint64_t array, std::uint64_t position) {
  return (array << 48U) + position;
}

/// Calls visit(position in the array, position in the box) for each element of a box, in row-major order.
template <class Visit>
void for_each_element(const Box& box, const Shape& array, Visit&& visit) {
  const std::uint64_t count = volume(box);
  Point at = box.begin;
  for (std::uint64_t i = 0; i < count; ++i) {
    std::uint64_t position = 0;
    for (std::size_t d = 0; d < box.dimensions; ++d) position = position * array[d] + at[d];
    visit(position, i);
    for (std::size_t d = box.dimensions; d-- > 0;) {
      if (++at[d] < box.end[d]) break;
      at[d] = box.begin[d];
    }
  }
}

/// Cuts a box into parts by planes at random places, some of them perhaps without elements.
inline std::vector<Box> cut_at_random(const Box& whole, std::uint64_t parts, faults::RandomChoices& random) {
  if (parts <= 1) return {whole};
  if (whole.dimensions == 0) {  // a scalar is in one part
    std::vector<Box> boxes(parts, box_at(Shape{0}, Shape{0}));
    boxes[random.below(parts)] = whole;
    return boxes;
  }
  const std::size_t side = random.below(whole.dimensions);
  const std::uint64_t before = 1 + random.below(parts - 1);
  Box one = whole;
  Box other = whole;
  one.end[side] = other.begin[side] = whole.begin[side] + random.below(whole.end[side] - whole.begin[side] + 1);
  std::vector<Box> boxes = cut_at_random(one, before, random);
  for (Box& box : cut_at_random(other, parts - before, random)) boxes.push_back(std::move(box));
  return boxes;
}

/// In parts that are slabs of alike size along one side.
inline std::vector<Box> cut_evenly(const Box& whole, std::uint64_t parts, std::size_t side) {
  std::vector<Box> boxes(parts, whole);
  const std::uint64_t extent = whole.end[side] - whole.begin[side];
  for (std::uint64_t i = 0; i < parts; ++i) {
    boxes[i].begin[side] = whole.begin[side] + extent * i / parts;
    boxes[i].end[side] = whole.begin[side] + extent * (i + 1) / parts;
  }
  return boxes;
}

/// A box anywhere in an array, perhaps without elements.
inline Box box_at_random(const Shape& array, faults::RandomChoices& random) {
  Box box = box_of(array);
  for (std::size_t d = 0; d < box.dimensions; ++d) {
    const std::uint64_t one = random.below(array[d] + 1);
    const std::uint64_t other = random.below(array[d] + 1);
    box.begin[d] = std::min(one, other);
    box.end[d] = std::max(one, other);
  }
  return box;
}

/// A saved region with its bytes.
struct SavedRegion {
  Offer offer;
  std::uint64_t array = 0;
  std::vector<std::byte> bytes;
  [[nodiscard]] std::uint64_t block_bytes(std::uint64_t block) const {
    return std::min<std::uint64_t>(format::kBlockBytes, bytes.size() - block * format::kBlockBytes);
  }
  [[nodiscard]] std::uint32_t crc(std::uint64_t block) const {
    return crc32c(std::span(bytes).subspan(block * format::kBlockBytes, block_bytes(block)));
  }
};

/// `placement` without a shard: the box is the whole region.
inline SavedRegion saved_region(std::string name, std::uint64_t array, const Shape& global_shape, const Box& box,
                                Placement placement, std::uint32_t logical_rank) {
  SavedRegion region;
  region.array = array;
  if (std::holds_alternative<Shard>(placement)) placement = Shard{global_shape, offset_of(box)};
  region.offer = {std::move(name), DataType::uint64, {}, shape_of(box), std::move(placement), logical_rank, false};
  region.bytes.resize(volume(box) * sizeof(std::uint64_t));
  for_each_element(box, global_shape, [&](std::uint64_t position, std::uint64_t i) {
    const std::uint64_t value = element_value(array, position);
    std::memcpy(region.bytes.data() + i * sizeof value, &value, sizeof value);
  });
  return region;
}

/// A want with its memory, which may be larger: then what lies around the want must stay as it is.
class WantedMemory {
 public:
  WantedMemory(Want want, std::uint64_t array, const std::vector<std::uint64_t>& margins = {})
      : want_(std::move(want)), array_(array), memory_shape_(want_.shape) {
    if (!margins.empty()) {
      BoxInArray inside;
      Point extents{};
      for (std::size_t d = 0; d < want_.shape.dimensions(); ++d) {
        inside.at[d] = margins[d];
        extents[d] = want_.shape[d] + 2 * margins[d];
      }
      memory_shape_ = Shape(std::span<const std::uint64_t>(extents).first(want_.shape.dimensions()));
      inside.extents = memory_shape_;
      want_.inside = inside;
    }
    memory_.assign(volume(box_of(memory_shape_)), kUntouched);
  }

  [[nodiscard]] const Want& want() const { return want_; }
  [[nodiscard]] std::byte* data() { return std::as_writable_bytes(std::span(memory_)).data(); }
  [[nodiscard]] const std::vector<std::uint64_t>& elements() const { return memory_; }

  /// Elements that are not what they should be, and others that changed.
  [[nodiscard]] std::uint64_t wrong_elements() const {
    const ArrayType type = type_of(want_);
    Box place = box_of(want_.shape);
    for (std::size_t d = 0; want_.inside && d < place.dimensions; ++d) {
      place.begin[d] += want_.inside->at[d];
      place.end[d] += want_.inside->at[d];
    }
    std::vector<std::uint64_t> expected(memory_.size(), kUntouched);
    std::vector<std::uint64_t> positions;
    for_each_element(place, memory_shape_, [&](std::uint64_t at, std::uint64_t) { positions.push_back(at); });
    for_each_element(box_of(want_), type.shape, [&](std::uint64_t position, std::uint64_t i) {
      expected[positions[i]] = element_value(array_, position);
    });
    std::uint64_t wrong = 0;
    for (std::size_t i = 0; i < memory_.size(); ++i) wrong += memory_[i] == expected[i] ? 0U : 1U;
    return wrong;
  }

 private:
  static constexpr std::uint64_t kUntouched = 0x5a5a5a5a5a5a5a5aU;
  Want want_;
  std::uint64_t array_;
  Shape memory_shape_;
  std::vector<std::uint64_t> memory_;
};

/// A block of the array that has this name and shape.
inline Want block_of(std::string name, const Shape& global_shape, const Box& box) {
  return {std::move(name), DataType::uint64, {}, shape_of(box), Shard{global_shape, offset_of(box)}, {}};
}

/// The blocks of the regions of which some byte is wanted: by region's position and block.
inline std::set<std::pair<std::size_t, std::uint64_t>> touched_blocks(const std::vector<SavedRegion>& regions,
                                                                      const std::vector<Want>& wants) {
  std::set<std::pair<std::size_t, std::uint64_t>> touched;
  for (std::size_t i = 0; i < regions.size(); ++i) {
    const Box saved = box_of(regions[i].offer);
    for (const Want& want : wants) {
      if (want.name != regions[i].offer.name || volume(saved) == 0 || volume(box_of(want)) == 0) continue;
      if (!overlap(saved, box_of(want))) continue;
      Box part = intersection(saved, box_of(want));
      for (std::size_t d = 0; d < part.dimensions; ++d) {
        part.begin[d] -= saved.begin[d];
        part.end[d] -= saved.begin[d];
      }
      std::optional<std::uint64_t> last;
      for_each_element(part, shape_of(saved), [&](std::uint64_t at, std::uint64_t) {
        const std::uint64_t block = at * sizeof(std::uint64_t) / format::kBlockBytes;
        if (std::exchange(last, block) != block) touched.insert({i, block});
      });
    }
  }
  return touched;
}

}  // namespace kedge::arrays

// Which regions the containers of a checkpoint have: arrays with their division into blocks, and other regions. As text
// and JSON.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "base/json_forward.hpp"
#include "format/container_reader.hpp"
#include "tools/division.hpp"

namespace kedge::tools {

class SavedRegions {
 public:
  void add(std::uint32_t rank, const format::StoredRegion& region);
  /// Without all containers of the checkpoint, which other nodes have, gaps in arrays are none.
  void set_incomplete() { is_complete_ = false; }

  // Tables that begin with an empty line; empty without anything to list.
  [[nodiscard]] std::string arrays_text() const;
  [[nodiscard]] std::string regions_text() const;
  /// Each block of each array.
  [[nodiscard]] std::string blocks_text() const;

  [[nodiscard]] Json arrays_json(bool with_blocks) const;
  [[nodiscard]] Json regions_json() const;

 private:
  struct Array {
    std::string members;
    Shape global_shape;
    std::vector<SavedBlock> blocks;
    std::uint64_t bytes = 0;
  };
  struct Other {
    Shape shape;
    std::string members;
    bool same_shape = true;
    std::uint64_t ranks = 0;
    std::uint64_t bytes = 0;
  };
  /// Name, type and global shape: blocks that differ in these are of several arrays.
  using ArrayKey = std::tuple<std::string, DataType, std::string>;
  /// Name, type, and "own", "replicated" or "routed file".
  using OtherKey = std::tuple<std::string, DataType, std::string>;

  [[nodiscard]] std::string division_cell(const Array& array) const;

  bool is_complete_ = true;
  std::map<ArrayKey, Array> arrays_;
  std::map<OtherKey, Other> others_;
};

}  // namespace kedge::tools

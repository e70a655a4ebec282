// What it costs to plan a restart on another number of ranks, and how much it reads of an array of which little is
// wanted. Nothing is saved or read: the plan says which blocks are.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "arguments.hpp"
#include "arrays/box.hpp"
#include "comm/group.hpp"
#include "kedge/communicator.hpp"
#include "recorder.hpp"
#include "table.hpp"
#include "team.hpp"

namespace kedge_bench {

/// Blocks of an array of 64-bit elements, saved or wanted.
using Boxes = std::vector<kedge::arrays::Box>;

/// COLLECTIVE calls throw on all ranks.
class PlanRows {
 public:
  explicit PlanRows(const Arguments& arguments);

  /// Local. Adds the rows that round() records.
  void add_to(Table& table) const;
  /// COLLECTIVE. Each row once; measured in the first round only, as the rest would give the same.
  void round(Recorder& recorder);

 private:
  [[nodiscard]] double home_seconds(const Boxes& saved, const Boxes& wanted) const;
  [[nodiscard]] double memory_kibibytes(const Boxes& saved, const Boxes& wanted) const;
  [[nodiscard]] double part_read(const Boxes& saved, const kedge::Shape& extents) const;
  /// COLLECTIVE. Bytes of the blocks that the plan reads on all ranks, if the boxes were saved, and are wanted, by
  /// ranks that take turns.
  [[nodiscard]] double planned_bytes(const kedge::Shape& array, const Boxes& saved, const Boxes& wanted) const;

  struct Counts {
    double home_s = 0;
    double memory_kib = 0;
    double slab = 0;
    double cube = 0;
    double cube_of_slabs = 0;
  };

  std::uint64_t shards_;  ///< cube roots
  std::uint64_t wants_;
  std::uint64_t places_;  ///< where a part of an array is wanted, in turn
  std::optional<Counts> counts_;
  Team first_;
  std::unique_ptr<kedge::Communicator> communicator_;
  kedge::comm::Group group_;
};

}  // namespace kedge_bench

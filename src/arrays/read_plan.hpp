// Who reads what and sends it to whom, so that all processes get what they want of a commit that another number of
// ranks saved. No process learns more than its share: shards and wants meet at the homes of tiles, which tell the
// stewards, which tell the readers and the receivers. Four sparse exchanges, each process having a few words with those
// that it shares bytes with.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "arrays/pattern.hpp"
#include "arrays/wanted_names.hpp"
#include "arrays/wants.hpp"
#include "comm/group.hpp"

namespace kedge::arrays {

/// A region of which this process reads blocks.
struct ReadOrder {
  std::string name;
  std::uint32_t logical_rank = 0;  ///< whose container it is in
  std::uint32_t offer = 0;         ///< its position among the steward's
  bool is_in_store = false;        ///< then this process is its steward
  std::uint64_t size_bytes = 0;
  std::vector<std::uint64_t> blocks;  ///< their numbers
  struct Part {
    int process = 0;  ///< that wants it
    int steward = 0;
    std::uint32_t number = 0;  ///< by which the steward and the process know it
    Pattern pattern;           ///< of which the stored offsets count
  };
  std::vector<Part> parts;
};

/// Part of a want of this process that lies in one stored region.
struct IncomingPart {
  std::uint32_t want = 0;
  Pattern pattern;
  std::uint64_t received_bytes = 0;
};
/// By steward and the steward's number.
using IncomingParts = std::map<std::pair<int, std::uint32_t>, IncomingPart>;

/// What a receiver permits one reader: so many bytes in each round of `turns`, beginning with number `turn`.
struct Grant {
  std::uint64_t bytes = 0;
  std::uint32_t turns = 1;
  std::uint32_t turn = 0;
};

struct ReadPlan {
  std::vector<ReadOrder> orders;
  IncomingParts incoming;
  std::map<int, Grant> grants;  ///< by receiver, for this process as a reader
};

struct PlanInput {
  std::span<const Want> wants;
  std::span<const Offer> offers;
  std::uint32_t logical_ranks = 0;  ///< that saved the commit; the same on all processes
  std::uint64_t buffer_bytes = 0;   ///< for messages and blocks of this process
};

/// COLLECTIVE, for the names of one batch. Throws the same Error on all processes: `mismatch` naming both if something
/// was saved otherwise than it is asked for, and with the first element if elements are asked for that nobody saved;
/// `not_found` if a name was saved by nobody; whatever a process failed with.
[[nodiscard]] ReadPlan make_read_plan(const comm::Group& group, const PlanInput& input, const WantedNames& names,
                                      const Batch& batch);

/// The grants of a receiver that gets bytes from these readers: equal shares of half of its buffer, and turns if these
/// would be too small.
[[nodiscard]] std::map<int, Grant> grants_of(std::span<const int> readers, std::uint64_t buffer_bytes);

}  // namespace kedge::arrays

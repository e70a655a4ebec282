#include "comm/reductions_check.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>

#include "base/text.hpp"
#include "comm/tree_collectives.hpp"
#include "kedge/error.hpp"

namespace kedge::comm {
namespace {

constexpr std::uint64_t kHighest = std::uint64_t{1} << 63U;
constexpr std::size_t kValues = 4;
using Values = std::array<std::uint64_t, kValues>;

struct NamedReduction {
  Reduction reduction;
  std::string_view name;
};
constexpr std::array<NamedReduction, 5> kReductions{{{Reduction::min, "minimum"},
                                                     {Reduction::max, "maximum"},
                                                     {Reduction::sum, "sum"},
                                                     {Reduction::bit_or, "bitwise or"},
                                                     {Reduction::bit_and, "bitwise and"}}};

/// Test values of a rank: on both sides of the sign bit, the least and the greatest, and one that differs on every
/// rank.
Values test_values_of(int rank) {
  const auto number = static_cast<std::uint64_t>(rank);
  const bool odd = number % 2 == 1;
  return {odd ? kHighest | 1U : 1U, odd ? std::numeric_limits<std::uint64_t>::max() : 0, kHighest + number,
          ~(number << 1U)};
}

/// Worked out here, from what each rank brings.
Values expected_values(Reduction reduction, int ranks) {
  Values result = test_values_of(0);
  for (int rank = 1; rank < ranks; ++rank) reduce_into(result, test_values_of(rank), reduction);
  return result;
}

/// The number of the first reduction that gave this rank a wrong result; as many as there are if none did.
std::size_t first_wrong_reduction(Communicator& communicator, Deadline deadline) {
  std::size_t wrong = kReductions.size();
  for (std::size_t i = kReductions.size(); i-- > 0;) {
    Values values = test_values_of(communicator.rank());
    communicator.all_reduce(values, kReductions[i].reduction, deadline);
    if (values != expected_values(kReductions[i].reduction, communicator.size())) wrong = i;
  }
  return wrong;
}

}  // namespace

void require_correct_reductions(Communicator& communicator, Deadline deadline) {
  const std::uint64_t wrong = first_wrong_reduction(communicator, deadline);
  // The lowest number of a reduction, and of the ranks that it went wrong for. A minimum by a tree of sends and
  // receives does not rest on what is in doubt.
  const auto size = static_cast<std::uint64_t>(communicator.size());
  std::array<std::uint64_t, 1> verdict{wrong * size + static_cast<std::uint64_t>(communicator.rank())};
  tree_all_reduce(communicator, verdict, Reduction::min, deadline);
  const std::uint64_t first = verdict[0] / size;
  if (first >= kReductions.size()) return;
  throw Error(ErrorCode::invalid_argument,
              compose("{} gives wrong results: the {} of 64-bit unsigned integers is wrong on rank {}. Use another "
                      "version: with this one, ranks would not agree on whether a checkpoint is complete",
                      communicator.library(), kReductions[first].name, verdict[0] % size));
}

}  // namespace kedge::comm

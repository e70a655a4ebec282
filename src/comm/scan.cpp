#include "comm/scan.hpp"

#include <array>

#include "comm/tree_collectives.hpp"

namespace kedge::comm {

std::vector<std::uint64_t> exclusive_scan(Communicator& communicator, std::span<const std::uint64_t> values,
                                          Deadline deadline) {
  const int rank = communicator.rank();
  const int ranks = communicator.size();
  std::vector<std::uint64_t> before(values.size());
  std::vector<std::uint64_t> through(values.begin(), values.end());  // over the last `distance` ranks, this included
  for (int distance = 1; distance<ranks; distance = distance> ranks / 2 ? ranks : 2 * distance) {
    const std::vector<std::uint64_t> sent = through;
    std::vector<std::uint64_t> received(values.size());
    std::array<Communicator::Request, 2> requests;
    if (rank >= distance) {
      requests[0] = communicator.receive(rank - distance, kScanChannel, std::as_writable_bytes(std::span(received)));
    }
    if (rank + distance < ranks) {
      requests[1] = communicator.send(rank + distance, kScanChannel, std::as_bytes(std::span(sent)));
    }
    communicator.wait(requests, deadline);
    reduce_into(before, received, Reduction::sum);
    reduce_into(through, received, Reduction::sum);
  }
  return before;
}

}  // namespace kedge::comm

#include "bare_exchange.hpp"

#include <mpi.h>

#include <algorithm>
#include <array>
#include <vector>

#include "timing.hpp"

namespace kedge_bench {
namespace {

constexpr std::uint64_t kPieceBytes = std::uint64_t{512} << 10U;
constexpr std::size_t kUnderWay = 8;

struct Slot {
  std::vector<std::byte> incoming = std::vector<std::byte>(kPieceBytes);
  std::array<MPI_Request, 2> requests{MPI_REQUEST_NULL, MPI_REQUEST_NULL};
};

}  // namespace

double bare_exchange(Buffers& buffers, std::uint64_t times, int peers) {
  int rank = 0;
  int ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const auto data = buffers.data_bytes();
  std::vector<Slot> slots(kUnderWay);
  std::uint64_t number = 0;
  const auto next = [&](Slot& slot, std::uint64_t begin) {
    MPI_Waitall(2, slot.requests.data(), MPI_STATUSES_IGNORE);
    const auto length = static_cast<int>(std::min<std::uint64_t>(kPieceBytes, data.size() - begin));
    const int apart = 1 + static_cast<int>(number++ % static_cast<std::uint64_t>(peers));
    MPI_Irecv(slot.incoming.data(), length, MPI_BYTE, (rank + ranks - apart) % ranks, 0, MPI_COMM_WORLD,
              slot.requests.data());
    MPI_Isend(data.data() + begin, length, MPI_BYTE, (rank + apart) % ranks, 0, MPI_COMM_WORLD, &slot.requests[1]);
  };
  return timed([&] {
    for (std::uint64_t time = 0; time < times; ++time) {
      for (std::uint64_t begin = 0; begin < data.size(); begin += kPieceBytes) next(slots[number % kUnderWay], begin);
    }
    for (Slot& slot : slots) MPI_Waitall(2, slot.requests.data(), MPI_STATUSES_IGNORE);
  });
}

bool over_network() {
  MPI_Comm together_here = MPI_COMM_NULL;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &together_here);
  int here = 0;
  int ranks = 0;
  MPI_Comm_size(together_here, &here);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Comm_free(&together_here);
  return most(here < ranks ? 1 : 0) > 0;
}

}  // namespace kedge_bench

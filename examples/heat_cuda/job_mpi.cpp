#include <mpi.h>

#include "job.hpp"
#include "kedge/mpi.hpp"

namespace heat_cuda {

int run_job(int argc, char** argv, const std::function<void()>& body) { return kedge::mpi_main(argc, argv, body); }

std::unique_ptr<kedge::Communicator> communicator() { return kedge::mpi(MPI_COMM_WORLD); }

Place place() {
  Place mine;
  MPI_Comm_rank(MPI_COMM_WORLD, &mine.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &mine.ranks);
  MPI_Comm node = MPI_COMM_NULL;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, mine.rank, MPI_INFO_NULL, &node);
  MPI_Comm_rank(node, &mine.local_rank);
  MPI_Comm_free(&node);
  return mine;
}

std::string first_of_all(const Place& place, const std::string& text) {
  int first = text.empty() ? place.ranks : place.rank;
  MPI_Allreduce(MPI_IN_PLACE, &first, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (first == place.ranks) return {};
  int length = static_cast<int>(text.size());
  MPI_Bcast(&length, 1, MPI_INT, first, MPI_COMM_WORLD);
  std::string theirs = place.rank == first ? text : std::string(static_cast<std::size_t>(length), ' ');
  MPI_Bcast(theirs.data(), length, MPI_CHAR, first, MPI_COMM_WORLD);
  return place.ranks == 1 ? theirs : theirs + " (rank " + std::to_string(first) + ")";
}

void exchange_rows(const Place& place, std::size_t columns, const double* first, const double* last, double* above,
                   double* below) {
  const int up = place.rank == 0 ? MPI_PROC_NULL : place.rank - 1;
  const int down = place.rank + 1 == place.ranks ? MPI_PROC_NULL : place.rank + 1;
  const int count = static_cast<int>(columns);
  MPI_Sendrecv(first, count, MPI_DOUBLE, up, 0, below, count, MPI_DOUBLE, down, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Sendrecv(last, count, MPI_DOUBLE, down, 0, above, count, MPI_DOUBLE, up, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

std::uint64_t in_turn(const Place& place, std::uint64_t begin,
                      const std::function<std::uint64_t(std::uint64_t)>& next) {
  std::uint64_t value = begin;
  if (place.rank != 0) {
    MPI_Recv(&value, 1, MPI_UINT64_T, place.rank - 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  value = next(value);
  if (place.rank + 1 != place.ranks) MPI_Send(&value, 1, MPI_UINT64_T, place.rank + 1, 1, MPI_COMM_WORLD);
  MPI_Bcast(&value, 1, MPI_UINT64_T, place.ranks - 1, MPI_COMM_WORLD);
  return value;
}

}  // namespace heat_cuda

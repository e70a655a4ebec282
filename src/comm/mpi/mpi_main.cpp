#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>
#include <string>
#include <thread>

#include "kedge/communicator.hpp"
#include "kedge/exit_status.hpp"
#include "kedge/mpi.hpp"

namespace kedge {
namespace {

constexpr std::chrono::seconds kOtherRanksWaitMax{10};
constexpr std::chrono::milliseconds kPollInterval{1};
constexpr std::chrono::milliseconds kForwarded{500};  // MPICH's launcher loses lines that it gets as the job ends

/// Whether all ranks of the launch get here in time. Those that do not may be in any call, or belong to a program that
/// knows nothing of Kedge: so nobody waits for them without a bound, and not before it is needed. What this sends is
/// the library's own, and never met by a receive of the application.
bool all_ranks_arrive() {
  MPI_Comm met = MPI_COMM_NULL;
  MPI_Request request = MPI_REQUEST_NULL;
  if (MPI_Comm_idup(MPI_COMM_WORLD, &met, &request) != MPI_SUCCESS) return false;
  WaitTimer wait_timer(Deadline::after(kOtherRanksWaitMax));
  for (int done = 0;;) {
    if (MPI_Test(&request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS) return false;
    if (done != 0) return MPI_Comm_free(&met) == MPI_SUCCESS;
    if (wait_timer.is_over()) return false;
    std::this_thread::sleep_for(kPollInterval);
  }
}

/// An expected error should not dump core. Open MPI's launcher may hang or crash in MPI_Abort while other ranks are in
/// MPI_Finalize or abort, too (seen with 4.1.4); a rank that exits without MPI_Finalize ends its jobs as well.
void end_job(int status) {
  std::fflush(nullptr);  // what the application printed
  if (std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr) std::_Exit(status);
  MPI_Abort(MPI_COMM_WORLD, status);
}

void print_error(const std::string& program, const std::string& what) {
  std::fprintf(stderr, "%s: %s\n", program.c_str(), what.c_str());
  std::fflush(stderr);
  std::this_thread::sleep_for(kForwarded);
}

}  // namespace

inline namespace KEDGE_MPI_FAMILY {

int mpi_main(int argc, char** argv, const std::function<void()>& body) {
  int provided = 0;
  int rank = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const std::string path = argc > 0 ? argv[0] : "";
  const std::string program = path.substr(path.find_last_of('/') + 1);
  std::optional<std::string> thrown;
  int status = 1;
  try {
    body();
  } catch (const Error& error) {
    thrown = error.what();
    status = exit_status(error.code());
  } catch (const std::exception& error) {
    thrown = error.what();
  } catch (...) {
    thrown = "an exception that is not derived from std::exception";
  }
  if (thrown) {
    const bool on_all = all_ranks_arrive();
    if (!on_all || rank == 0) print_error(program, *thrown);
    if (!on_all) end_job(status);
  }
  MPI_Finalize();
  return thrown ? status : 0;
}

}  // namespace KEDGE_MPI_FAMILY
}  // namespace kedge

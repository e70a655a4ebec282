#include <chrono>
#include <cstdio>
#include <exception>
#include <optional>
#include <string>
#include <thread>

#include "kedge/communicator.hpp"
#include "kedge/exit_status.hpp"
#include "kedge/mpi.hpp"

namespace kedge {
namespace {

constexpr std::chrono::seconds kOthersMax{10};
constexpr std::chrono::milliseconds kPollInterval{1};

/// Whether all ranks get here in time. Those that do not may be in any call, so nobody waits for them without a bound.
bool all_get_here(MPI_Comm world) {
  MPI_Request request = MPI_REQUEST_NULL;
  if (MPI_Ibarrier(world, &request) != MPI_SUCCESS) return false;
  Patience patience(Deadline::after(kOthersMax));
  for (int done = 0;;) {
    if (MPI_Test(&request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS) return false;
    if (done != 0) return true;
    if (patience.is_over()) return false;
    std::this_thread::sleep_for(kPollInterval);
  }
}

void print(const std::string& program, const std::string& what) {
  std::fprintf(stderr, "%s: %s\n", program.c_str(), what.c_str());
  std::fflush(stderr);
}

}  // namespace

inline namespace KEDGE_MPI_FAMILY {

int mpi_main(int argc, char** argv, const std::function<void()>& body) {
  int provided = 0;
  int rank = 0;
  MPI_Comm own = MPI_COMM_NULL;  // the application's messages are not mixed with the barrier's
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_dup(MPI_COMM_WORLD, &own);
  MPI_Comm_rank(own, &rank);
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
    const bool on_all = all_get_here(own);
    if (!on_all || rank == 0) print(program, *thrown);
    if (!on_all) MPI_Abort(MPI_COMM_WORLD, status);  // an expected error should not dump core
  }
  MPI_Comm_free(&own);
  MPI_Finalize();
  return thrown ? status : 0;
}

}  // namespace KEDGE_MPI_FAMILY
}  // namespace kedge

#include <nanobind/stl/string.h>

#include <chrono>
#include <cstdint>
#include <thread>
#include <utility>

#include "bindings/python/calls.hpp"
#include "bindings/python/engine.hpp"
#include "bindings/python/transport.hpp"
#include "kedge/error.hpp"
#ifdef KEDGE_PYTHON_MPI
#include "kedge/mpi.hpp"
#endif

namespace nb = nanobind;

namespace kedge::python {
namespace {

Ranks ranks_of(std::unique_ptr<Communicator> communicator) {
  Ranks ranks;
  ranks.rank = communicator->rank();
  ranks.size = communicator->size();
  ranks.communicator = std::move(communicator);
  return ranks;
}

#ifdef KEDGE_PYTHON_MPI

bool mpi_is_running() {
  int initialized = 0;
  int finalized = 0;
  MPI_Initialized(&initialized);
  MPI_Finalized(&finalized);
  return initialized != 0 && finalized == 0;
}

/// The library's version text, in one line.
std::string mpi_library() {
  std::string text(MPI_MAX_LIBRARY_VERSION_STRING, '\0');
  int length = 0;
  MPI_Get_library_version(text.data(), &length);
  text.resize(static_cast<std::size_t>(length));
  return text.substr(0, text.find_first_of("\n\0", 0, 2));
}

void initialize_mpi() {
  int provided = 0;
  if (MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided) != MPI_SUCCESS) {
    throw Error(ErrorCode::bad_state, "MPI_Init_thread failed; see the MPI library's messages");
  }
}

/// COLLECTIVE if all ranks call it. Returns false, without finalizing, if they do not within that time.
bool finalize_if_all_come(double seconds) {
  // The application's receives cannot match a barrier's messages. The communicator is made on first use, because other
  // programs of the launch never join.
  MPI_Comm met = MPI_COMM_NULL;
  MPI_Request request = MPI_REQUEST_NULL;
  if (MPI_Comm_idup(MPI_COMM_WORLD, &met, &request) != MPI_SUCCESS) return false;
  WaitTimer wait_timer(Deadline::after(std::chrono::duration<double>(seconds)));
  for (int done = 0; done == 0;) {
    if (MPI_Test(&request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS) return false;
    if (done == 0 && wait_timer.is_over()) return false;
    if (done == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  MPI_Comm_free(&met);
  MPI_Finalize();
  return true;
}

void bind_mpi(nb::module_& module) {
  module.attr("has_mpi") = true;
  module.def("mpi_library", mpi_library);
  module.def("mpi_is_running", mpi_is_running);
  module.def("mpi_init", initialize_mpi);
  module.def("mpi_finalize", [](double seconds) {
    const GilRelease unlocked;
    return finalize_if_all_come(seconds);
  });
  module.def("mpi_world", [] { return ranks_of(mpi(MPI_COMM_WORLD)); });
  module.def("mpi_at", [](std::uintptr_t address) { return ranks_of(mpi(*reinterpret_cast<MPI_Comm*>(address))); });
}

#else

void bind_mpi(nb::module_& module) { module.attr("has_mpi") = false; }

#endif

}  // namespace

void bind_communicators(nb::module_& module) {
  nb::class_<Ranks>(module, "Ranks").def_ro("rank", &Ranks::rank).def_ro("size", &Ranks::size);
  module.def("single_process", [] { return ranks_of(single_process()); });
  module.def("over_transport",
             [](nb::object transport) { return ranks_of(make_communicator(python_transport(std::move(transport)))); });
  bind_mpi(module);
}

}  // namespace kedge::python

// Engines over MPI: the part of the C API that goes into kedge::kedge.
#include "kedge/mpi.hpp"

#include <memory>

#include "base/loaded_libraries.hpp"
#include "bindings/c/failure.hpp"
#include "bindings/c/handle.hpp"
#include "kedge/kedge_mpi.h"

using namespace kedge;

extern "C" {

kedge_error kedge_engine_new(MPI_Comm comm, const kedge_options* options, kedge_engine** engine) {
  return bindings::run_and_catch([&] {
    Options given = options == nullptr ? Options::load() : options->options;
    if (engine == nullptr && !given.load_failure) {  // passed to the constructor, where the other ranks wait
      given.load_failure = Failure{ErrorCode::invalid_argument, "kedge_engine_new: engine must not be NULL"};
    }
    auto made = std::make_unique<kedge_engine>(Engine(mpi(comm), std::move(given)));
    *engine = made.release();
  });
}

kedge_error kedge_engine_new_f(MPI_Fint comm, const kedge_options* options, kedge_engine** engine) {
  // Checked before any MPI call, because with two MPI libraries either one may answer.
  if (const auto words = two_mpi_warning(loaded_libraries(), KEDGE_MPI_FAMILY_TEXT)) {
    return bindings::run_and_catch([&] { throw Error(ErrorCode::bad_state, *words); });
  }
  int initialized = 0;
  int finalized = 0;
  MPI_Initialized(&initialized);
  MPI_Finalized(&finalized);
  // Translating the communicator needs a running MPI; without one the engine refuses it with the reason.
  const bool runs = initialized != 0 && finalized == 0;
  return kedge_engine_new(runs ? MPI_Comm_f2c(comm) : MPI_COMM_NULL, options, engine);
}

}  // extern "C"

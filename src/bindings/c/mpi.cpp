// Engines over MPI: the part of the C API that goes into kedge::kedge.
#include "kedge/mpi.hpp"

#include <memory>

#include "base/loaded_libraries.hpp"
#include "base/loaded_mpi.hpp"
#include "bindings/c/failure.hpp"
#include "bindings/c/handle.hpp"
#include "kedge/kedge_mpi.h"

using namespace kedge;

extern "C" {

kedge_error kedge_engine_new(MPI_Comm comm, const kedge_options* options, kedge_engine** engine) {
  return bindings::guarded([&] {
    Options given = options == nullptr ? Options::load() : options->options;
    if (engine == nullptr && !given.load_failure) {  // brought along: the other ranks wait in the constructor
      given.load_failure = Failure{ErrorCode::invalid_argument, "kedge_engine_new: engine must not be NULL", -1, {}, 0};
    }
    auto made = std::make_unique<kedge_engine>(Engine(mpi(comm), std::move(given)));
    *engine = made.release();
  });
}

kedge_error kedge_engine_new_f(MPI_Fint comm, const kedge_options* options, kedge_engine** engine) {
  // Before any call to MPI: with two of them, nobody knows which one answers.
  if (const auto words = two_mpi_warning(loaded_libraries(), KEDGE_MPI_FAMILY_TEXT)) {
    return bindings::guarded([&] { throw Error(ErrorCode::bad_state, *words); });
  }
  int initialized = 0;
  int finalized = 0;
  MPI_Initialized(&initialized);
  MPI_Finalized(&finalized);
  // To translate the communicator, MPI must run; without one it is refused with the reason.
  const bool runs = initialized != 0 && finalized == 0;
  return kedge_engine_new(runs ? MPI_Comm_f2c(comm) : MPI_COMM_NULL, options, engine);
}

}  // extern "C"

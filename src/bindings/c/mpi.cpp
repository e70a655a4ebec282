// Engines over MPI: the part of the C API that goes into kedge::kedge.
#include "kedge/mpi.hpp"

#include <memory>

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
  return kedge_engine_new(MPI_Comm_f2c(comm), options, engine);
}

}  // extern "C"

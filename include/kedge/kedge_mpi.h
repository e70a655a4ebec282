/* Kedge's engine over MPI, from C and Fortran. */
/* NOLINTBEGIN(modernize-*,readability-identifier-naming): names and forms are those of C */
#ifndef KEDGE_KEDGE_MPI_H
#define KEDGE_KEDGE_MPI_H

#include <mpi.h>

#include "kedge/kedge.h"

#ifdef __cplusplus
extern "C" {
#endif

/* COLLECTIVE over all ranks of `comm`, an intra-communicator. Takes the next incarnation of the run and its place on
 * the node-local store; `engine` becomes the engine, which the caller frees with kedge_engine_free. `comm` is
 * duplicated and may be freed afterwards. Null options are those of kedge_options_load. KEDGE_INVALID_ARGUMENT (an
 * option, or options that differ between ranks; a null `engine` on any rank), KEDGE_BAD_STATE (MPI is not initialised
 * or finalised), KEDGE_IO (prefix or store cannot be used), KEDGE_BUSY (another start of this run is alive). */
KEDGE_MUST_CHECK kedge_error kedge_engine_new(MPI_Comm comm, const kedge_options* options, kedge_engine** engine);

/* The same for a communicator as Fortran names it. */
KEDGE_MUST_CHECK kedge_error kedge_engine_new_f(MPI_Fint comm, const kedge_options* options, kedge_engine** engine);

#ifdef __cplusplus
}
#endif

#endif
/* NOLINTEND(modernize-*,readability-identifier-naming) */

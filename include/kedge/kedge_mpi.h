/** @file
 * Kedge's engine over MPI, from C and Fortran. */
/* NOLINTBEGIN(modernize-*,readability-identifier-naming): names and forms are those of C */
#ifndef KEDGE_KEDGE_MPI_H
#define KEDGE_KEDGE_MPI_H

#include <mpi.h>

#include "kedge/kedge.h"
#include "kedge/mpi_family.h"

/* A program and a Kedge of different MPI libraries do not link. */
/** \cond */
#define kedge_engine_new KEDGE_MPI_NAME(kedge_engine_new)
#define kedge_engine_new_f KEDGE_MPI_NAME(kedge_engine_new_f)
/** \endcond */

#ifdef __cplusplus
extern "C" {
#endif

/** COLLECTIVE over all ranks of `comm`, an intra-communicator. Starts the run's next incarnation and takes over
 * its node-local store. `engine` receives the engine, which the caller frees with kedge_engine_free. `comm` is
 * duplicated and may be freed afterwards. NULL `options` are like those of kedge_options_load. KEDGE_INVALID_ARGUMENT
 * (a bad option, or options that differ between ranks; `engine` is NULL on any rank; `comm` is MPI_COMM_NULL or an
 * inter-communicator; the MPI's reductions give wrong results), KEDGE_BAD_STATE (MPI is not initialized, or is
 * finalized), KEDGE_MISMATCH (the checkpoints here are of several runs, of another input, or in stores that the prefix
 * does not know), KEDGE_CORRUPT (checkpoints exist, but their run is unknown), KEDGE_IO or KEDGE_NOT_FOUND (prefix
 * or store cannot be used), KEDGE_BUSY (another start of this run is alive), KEDGE_TIMEOUT (a rank did not make this
 * call), KEDGE_RANK_FAILED (a rank died, or communication with it failed). */
KEDGE_MUST_CHECK kedge_error kedge_engine_new(MPI_Comm comm, const kedge_options* options, kedge_engine** engine);

/** As kedge_engine_new, for a Fortran communicator handle. KEDGE_BAD_STATE also if the process has loaded two MPI
 * libraries. */
KEDGE_MUST_CHECK kedge_error kedge_engine_new_f(MPI_Fint comm, const kedge_options* options, kedge_engine** engine);

#ifdef __cplusplus
}
#endif

#endif
/* NOLINTEND(modernize-*,readability-identifier-naming) */

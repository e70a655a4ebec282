/** @file
 * GPU streams, from C and Fortran. kedge_save, its variants and kedge_load accept pointers to NVIDIA GPU memory; these
 * calls set the stream that they wait for. */
/* NOLINTBEGIN(modernize-*,readability-identifier-naming): names and forms are those of C */
#ifndef KEDGE_KEDGE_DEVICE_H
#define KEDGE_KEDGE_DEVICE_H

#include "kedge/kedge.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Local. From now on this engine's kedge_save, its variants and kedge_load read and write memory after all work
 * already enqueued on `stream`, a cudaStream_t or CUstream that the caller owns and that must be valid in each of these
 * calls. NULL is the legacy default stream; code compiled for per-thread default streams passes
 * cudaStreamPerThread. Without a stream they wait for all work of the memory's context, and do not wait for host
 * memory. Do not call it while another thread is in one of these calls. KEDGE_INVALID_ARGUMENT: `engine` is NULL. */
kedge_error kedge_set_stream(kedge_engine* engine, void* stream);

/** Local. Undoes kedge_set_stream. KEDGE_INVALID_ARGUMENT: `engine` is NULL. */
kedge_error kedge_unset_stream(kedge_engine* engine);

#ifdef __cplusplus
}
#endif

#endif
/* NOLINTEND(modernize-*,readability-identifier-naming) */

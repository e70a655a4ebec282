/** @file
 * Memory of NVIDIA GPUs, from C and Fortran. kedge_save, its variants and kedge_load take pointers to it as they take
 * those to host memory; these calls set the stream that they wait for. */
/* NOLINTBEGIN(modernize-*,readability-identifier-naming): names and forms are those of C */
#ifndef KEDGE_KEDGE_DEVICE_H
#define KEDGE_KEDGE_DEVICE_H

#include "kedge/kedge.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Local. From now on this engine's kedge_save, its variants and kedge_load read and write memory after all work
 * already enqueued on `stream`, a cudaStream_t or CUstream that the caller owns and that must be valid in each of these
 * calls. NULL is the legacy default stream; code that is compiled for default streams of each thread gives
 * cudaStreamPerThread. Without this call they wait for all work of the memory's context, and for none with host memory.
 * Must not be called while another thread is in one of them. KEDGE_INVALID_ARGUMENT: `engine` is NULL. */
kedge_error kedge_set_stream(kedge_engine* engine, void* stream);

/** Local. Undoes kedge_set_stream. KEDGE_INVALID_ARGUMENT: `engine` is NULL. */
kedge_error kedge_unset_stream(kedge_engine* engine);

#ifdef __cplusplus
}
#endif

#endif
/* NOLINTEND(modernize-*,readability-identifier-naming) */

/** @file
 * Loading a checkpoint that another number of ranks saved. kedge.h includes this. */
/* NOLINTBEGIN(modernize-*,readability-identifier-naming): names and forms are those of C */
#ifndef KEDGE_KEDGE_WANT_H
#define KEDGE_KEDGE_WANT_H

#include "kedge/kedge.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Part of a checkpoint that kedge_load_all brings into memory of this rank. Initialize all of it: a field that is not
 * named in `{.name = ...}` is zero, which is always its default. */
typedef struct kedge_want {
  const char* name;             /**< of the region, as given to kedge_save */
  void* data;                   /**< the caller's host memory for the elements, contiguous and in row-major order; may
                                     be NULL if there are none */
  const uint64_t* shape;        /**< `dimensions` extents of `data` in elements, slowest first; NULL for a scalar */
  kedge_dtype dtype;            /**< of one element, as saved */
  int dimensions;               /**< 0 for a scalar, at most KEDGE_MAX_DIMENSIONS */
  kedge_placement placement;    /**< KEDGE_PLACEMENT_SHARD: any block of a global array, however it was divided when it
                                     was saved; KEDGE_PLACEMENT_REPLICATED: a region that all ranks saved alike;
                                     KEDGE_PLACEMENT_OWN: that of the rank `of`, or the only one of this name */
  const uint64_t* global_shape; /**< of a shard: the whole array's `dimensions` extents, as saved; else NULL */
  const uint64_t* offset;       /**< of a shard: where the block begins, in elements from 0; else NULL */
  const uint32_t* of;           /**< with KEDGE_PLACEMENT_OWN: the rank that saved it, from 0. NULL: whichever saved it,
                                     if only one rank did */
  const char* refused;          /**< for interfaces to other languages: why this want cannot be passed on. The call then
                                     fails with this text. NULL in programs */
  uint64_t reserved[4];         /**< zero */
} kedge_want;

/** COLLECTIVE, between kedge_open and kedge_close. Fills the memory of these `count` wants, different ones on each
 * rank, from the open checkpoint, whichever ranks saved it and however many there were. `wants` may be NULL if `count`
 * is 0, for a rank that loads nothing. Blocks of several ranks may overlap, so that ghost layers can be asked for; two
 * wants of one rank may not have the same memory. Everything is in memory, and every byte verified, when it returns
 * KEDGE_OK; the wants themselves may then be freed. Besides `data` it needs open.buffer_bytes of memory on each rank.
 *
 * On failure all ranks return the same error, and the memory of all wants of all ranks is undefined.
 * KEDGE_INVALID_ARGUMENT: a want that cannot be, on any rank, such as one without a name, or with memory of a GPU or
 * of another want. KEDGE_NOT_FOUND: nobody saved it. KEDGE_MISMATCH: type, shape or placement are not the saved ones,
 * elements are wanted that nobody saved, or several ranks saved a region of this name. KEDGE_BAD_STATE: no checkpoint
 * is open. KEDGE_NO_SPACE, KEDGE_IO. KEDGE_CORRUPT: kedge_close returns it again, and the next kedge_open takes an
 * older checkpoint or a rebuilt one:
 *
 *     do {
 *       require(kedge_open(engine, NULL, KEDGE_KEEP_NEWER, &found));
 *       if (!found) return 0;
 *       code = kedge_load_all(engine, wants, 2);
 *       if (code == KEDGE_OK || code == KEDGE_CORRUPT) code = kedge_close(engine);
 *     } while (code == KEDGE_CORRUPT);
 *     require(code);
 */
KEDGE_MUST_CHECK kedge_error kedge_load_all(kedge_engine* engine, const kedge_want* wants, size_t count);

/** Local. The ranks that saved the open checkpoint and whose files this process reads, ascending: this rank alone, or
 * some, or none, where another number of ranks saved it (`world_size` of kedge_get_info). Together the processes have
 * each of these ranks once, so that regions of single ranks can be dealt out by it. Copies up to `capacity` of them to
 * `ranks` (may be NULL if `capacity` is 0); `count`, if not NULL, receives how many there are. KEDGE_INVALID_ARGUMENT;
 * KEDGE_BAD_STATE: no checkpoint is open. */
kedge_error kedge_logical_ranks(const kedge_engine* engine, uint32_t* ranks, size_t capacity, size_t* count);

#ifdef __cplusplus
}
#endif

#endif
/* NOLINTEND(modernize-*,readability-identifier-naming) */

/* Kedge from C (C99) and from whatever calls C; kedge_mpi.h beside it makes engines over MPI. Call by call as in
 * engine.hpp.
 *
 * Calls marked COLLECTIVE must be made by all ranks in the same order. They succeed on all ranks or return the same
 * error code on all, but for KEDGE_TIMEOUT, and for a null engine, with which a rank cannot reach the others: it
 * returns KEDGE_INVALID_ARGUMENT alone. All other calls are local. Collective calls of an engine come from one thread
 * at a time; kedge_save and kedge_load may come from several.
 *
 * Ownership: what a call is given it has copied when it returns, but for the memory that kedge_load fills. What ends in
 * _free takes a null pointer too. Results are written to places that the caller owns and that are untouched on failure.
 * Nothing throws, aborts or exits.
 *
 * Binary interface: kedge_engine and kedge_options are opaque; numbers of enumerators are never reused; structs that
 * the caller makes have room to grow, so new fields keep a program running that was compiled before. */
/* NOLINTBEGIN(modernize-*,readability-identifier-naming): names and forms are those of C */
#ifndef KEDGE_KEDGE_H
#define KEDGE_KEDGE_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define KEDGE_MUST_CHECK __attribute__((warn_unused_result)) /* a failure that goes unseen costs a run */
#else
#define KEDGE_MUST_CHECK
#endif

#ifdef __cplusplus
#define KEDGE_AS_INT : int /* C passes any int */
extern "C" {
#else
#define KEDGE_AS_INT
#endif

/* Errors ------------------------------------------------------------------------------------------------------- */

typedef enum kedge_error KEDGE_AS_INT {
  KEDGE_OK = 0,
  KEDGE_INVALID_ARGUMENT = 1, /* a value given by the caller; the text names the field or the call */
  KEDGE_BAD_STATE = 2,        /* the call does not fit here (wrong order, ranks in different calls, dead engine) */
  KEDGE_NOT_FOUND = 3,        /* no such tag, region or attribute */
  KEDGE_MISMATCH = 4,         /* type or shape differ from what was saved */
  KEDGE_NO_SPACE = 5,         /* full storage, no inodes, no memory; the text says needed and free */
  KEDGE_IO = 6,               /* the system refused; path and errno are given */
  KEDGE_CORRUPT = 7,          /* stored bytes are not what was written */
  KEDGE_UNRECOVERABLE = 8,    /* checkpoints exist and none can be had */
  KEDGE_TIMEOUT = 9,          /* a peer did not answer in time: the engine takes no more calls */
  KEDGE_BUSY = 10             /* held by somebody else */
} kedge_error;

/* What went wrong last in the calling thread. */
typedef struct kedge_failure {
  kedge_error code; /* KEDGE_OK if nothing did yet */
  int rank;         /* rank on which it happened, -1 if it concerns no single rank */
  int system_errno; /* errno of the system call, or 0 */
  const char* text; /* one line for people, with code, rank, path and what to do; never null */
  const char* path; /* the file concerned, or empty; never null */
} kedge_failure;

/* The code's name in small letters, e.g. "no_space"; "ok"; "unknown" for another number. Lives for ever. */
const char* kedge_error_name(kedge_error code);

/* What the last call of this thread that failed reported, whichever engine it was for. As with errno, calls that
 * succeed leave it. The struct belongs to Kedge; it and its texts are valid until this thread's next call into Kedge or
 * until the thread ends. Never null. */
const kedge_failure* kedge_last_failure(void);

/* The text of kedge_last_failure(), e.g. for a program's last words. Never null. */
const char* kedge_last_error(void);

/* Options ------------------------------------------------------------------------------------------------------ */

typedef struct kedge_options kedge_options;

/* Defaults, then the configuration file (KEDGE_CONFIG, else ./kedge.toml), then environment variables. What is wrong in
 * them is kept and reported by kedge_engine_new, on all ranks. The caller frees them with kedge_options_free.
 * KEDGE_INVALID_ARGUMENT (no place), KEDGE_NO_SPACE (no memory). */
KEDGE_MUST_CHECK kedge_error kedge_options_load(kedge_options** options);

/* Sets one option, e.g. ("store.path", "/local/{node}") or ("redundancy.every", "2"): the names of the configuration
 * file, values spelt as in the environment. KEDGE_INVALID_ARGUMENT: no such option (the text says which was meant), or
 * no value for it. That is kept too, for kedge_engine_new to report on all ranks: the result need not be looked at. */
kedge_error kedge_options_set(kedge_options* options, const char* name, const char* value);

/* The option's value as text with its closing zero, cut to `size` bytes; `length`, if not null, becomes the length of
 * the whole text without it. `buffer` may be null if `size` is 0. KEDGE_INVALID_ARGUMENT: no such option. */
kedge_error kedge_options_get(const kedge_options* options, const char* name, char* buffer, size_t size,
                              size_t* length);

void kedge_options_free(kedge_options* options);

/* The engine --------------------------------------------------------------------------------------------------- */

/* One run's checkpoint engine; made by kedge_engine_new (kedge_mpi.h). */
typedef struct kedge_engine kedge_engine;

/* COLLECTIVE. Ends the engine by policy (store.on_exit); afterwards every call but kedge_engine_free gives
 * KEDGE_BAD_STATE. */
kedge_error kedge_finalize(kedge_engine* engine);

/* Frees the engine. Never communicates, harmless after MPI_Finalize; call kedge_finalize first for an orderly end. */
void kedge_engine_free(kedge_engine* engine);

/* COLLECTIVE. `needed` becomes 1 when the schedule asks for a checkpoint now, else 0; the same on every rank.
 * A null `needed` is reported on that rank alone. */
KEDGE_MUST_CHECK kedge_error kedge_need_checkpoint(kedge_engine* engine, int* needed);

/* Saving ------------------------------------------------------------------------------------------------------- */

enum {
  KEDGE_TAG_SIZE = 129,    /* a tag's longest text with its closing zero */
  KEDGE_ID_SIZE = 33,      /* 32 hex digits with their closing zero */
  KEDGE_MAX_DIMENSIONS = 8 /* of a region */
};

/* Element types. The numbers are on disk. */
typedef enum kedge_dtype KEDGE_AS_INT {
  KEDGE_INT8 = 1,
  KEDGE_INT16 = 2,
  KEDGE_INT32 = 3,
  KEDGE_INT64 = 4,
  KEDGE_UINT8 = 5,
  KEDGE_UINT16 = 6,
  KEDGE_UINT32 = 7,
  KEDGE_UINT64 = 8,
  KEDGE_FLOAT16 = 9,
  KEDGE_BFLOAT16 = 10,
  KEDGE_FLOAT32 = 11,
  KEDGE_FLOAT64 = 12,
  KEDGE_COMPLEX64 = 13,  /* two KEDGE_FLOAT32 */
  KEDGE_COMPLEX128 = 14, /* two KEDGE_FLOAT64 */
  KEDGE_BOOL = 15,       /* one byte, 0 or 1 */
  KEDGE_OPAQUE = 16      /* one uninterpreted byte */
} kedge_dtype;

typedef enum kedge_attribute_type KEDGE_AS_INT {
  KEDGE_ATTRIBUTE_INT64 = 1,  /* int64_t */
  KEDGE_ATTRIBUTE_DOUBLE = 2, /* double, finite */
  KEDGE_ATTRIBUTE_STRING = 3  /* UTF-8, closed by a zero */
} kedge_attribute_type;

/* A small fact given to a checkpoint along. All of a checkpoint's take at most 64 KiB. */
typedef struct kedge_attribute {
  const char* key; /* UTF-8, 1 to 255 bytes */
  kedge_attribute_type type;
  size_t count;      /* numbers: how many, 1 is a scalar; a string: not looked at */
  const void* value; /* to the first number or letter; null only for no numbers at all */
} kedge_attribute;

/* How much a commit survives, in rising order. */
typedef enum kedge_level KEDGE_AS_INT {
  KEDGE_LEVEL_NONE = 0,      /* not committed */
  KEDGE_LEVEL_SNAPSHOT = 1,  /* copied on the device only */
  KEDGE_LEVEL_LOCAL = 2,     /* on the node-local stores of all ranks; survives the death of processes */
  KEDGE_LEVEL_PROTECTED = 3, /* survives the loss of failure domains */
  KEDGE_LEVEL_PERSISTENT = 4 /* on the parallel filesystem; survives the allocation */
} kedge_level;

/* "none", "snapshot", "local", "protected", "persistent"; "unknown" for another number. Lives for ever. */
const char* kedge_level_name(kedge_level level);

/* COLLECTIVE. Begins a checkpoint. `tag`: 1 to 128 of A-Z a-z 0-9 . _ -, not beginning with a dot; "latest" is
 * reserved. The `attribute_count` attributes of rank 0 count; null if there are none. KEDGE_INVALID_ARGUMENT,
 * KEDGE_BAD_STATE, KEDGE_NO_SPACE, KEDGE_IO. */
KEDGE_MUST_CHECK kedge_error kedge_create(kedge_engine* engine, const char* tag, const kedge_attribute* attributes,
                                          size_t attribute_count);

/* Copies a region: `dimensions` (0 for a scalar, at most KEDGE_MAX_DIMENSIONS) extents in `shape`, in elements, slowest
 * first, and the elements at `data` in row-major order; the memory may be reused when the call returns. `name` is
 * UTF-8,
 * `/` makes groups. A failure is remembered and reported by kedge_commit on all ranks, so the result need not be
 * looked at. KEDGE_INVALID_ARGUMENT, KEDGE_BAD_STATE, KEDGE_NO_SPACE, KEDGE_IO. */
kedge_error kedge_save(kedge_engine* engine, const char* name, const void* data, kedge_dtype dtype, int dimensions,
                       const uint64_t* shape);

/* The same for a region that is the block at `offset` of a global array of `global_shape`, both of `dimensions`
 * elements. The blocks of all ranks must cover the array once; where `holes_allowed` is not 0, elements that nobody
 * saves are meant so. */
kedge_error kedge_save_shard(kedge_engine* engine, const char* name, const void* data, kedge_dtype dtype,
                             int dimensions, const uint64_t* shape, const uint64_t* global_shape,
                             const uint64_t* offset, int holes_allowed);

/* The same for a region of which every rank saves the same bytes. */
kedge_error kedge_save_replicated(kedge_engine* engine, const char* name, const void* data, kedge_dtype dtype,
                                  int dimensions, const uint64_t* shape);

/* COLLECTIVE. Seals the checkpoint on all ranks or on none, and reports the first failure since kedge_create. */
KEDGE_MUST_CHECK kedge_error kedge_commit(kedge_engine* engine);

/* COLLECTIVE. Drops what kedge_create began. */
kedge_error kedge_abandon(kedge_engine* engine);

/* The level that the newest commit of this tag has reached, as far as this engine knows. */
kedge_error kedge_get_level(const kedge_engine* engine, const char* tag, kedge_level* level);

/* COLLECTIVE. Returns when the newest commit of this tag has reached the level. KEDGE_NOT_FOUND (no such commit is
 * kept), KEDGE_INVALID_ARGUMENT (no level, or one that the options rule out), or why it cannot be reached: the commit
 * is then as it was. */
KEDGE_MUST_CHECK kedge_error kedge_wait(kedge_engine* engine, const char* tag, kedge_level level);

/* COLLECTIVE. A commit that is pinned (not 0) stays on the prefix whatever persistent.keep says, until it is unpinned
 * (0). KEDGE_NOT_FOUND: no commit of this tag is there. */
KEDGE_MUST_CHECK kedge_error kedge_pin(kedge_engine* engine, const char* tag, int pinned);

/* Loading ------------------------------------------------------------------------------------------------------ */

/* What becomes of commits newer than the one opened. */
typedef enum kedge_newer KEDGE_AS_INT {
  KEDGE_KEEP_NEWER = 0,   /* they stay candidates: opening the newest may return to them */
  KEDGE_DISCARD_NEWER = 1 /* they are recorded as abandoned, durably, and never offered again */
} kedge_newer;

/* COLLECTIVE. Opens the newest commit of this tag that all ranks can have again; a null tag or "latest" is the newest
 * of all. `found` becomes 1, or 0 if the run has no commit yet or none of this tag; kedge_get_info tells which it is.
 * KEDGE_UNRECOVERABLE if commits exist and none can be had. */
KEDGE_MUST_CHECK kedge_error kedge_open(kedge_engine* engine, const char* tag, kedge_newer newer, int* found);

/* COLLECTIVE. The same for the newest one that is older than every commit of this tag. */
KEDGE_MUST_CHECK kedge_error kedge_open_before(kedge_engine* engine, const char* tag, kedge_newer newer, int* found);

/* COLLECTIVE. The same for another run's checkpoint, or a copied tag directory, as a new run's beginning: it is read
 * where it lies. `prefix` is the directory that holds the tag directories; `run` whose tags, null or empty is
 * anybody's; `tag` as for kedge_open. Whose files are believed is the option persistent.trust. */
KEDGE_MUST_CHECK kedge_error kedge_open_source(kedge_engine* engine, const char* prefix, const char* run,
                                               const char* tag, int* found);

/* Where an opened checkpoint came from; the costliest way that any rank needed. */
typedef enum kedge_source KEDGE_AS_INT {
  KEDGE_SOURCE_IN_PLACE = 0,
  KEDGE_SOURCE_MOVED = 1,
  KEDGE_SOURCE_REBUILT = 2,
  KEDGE_SOURCE_FETCHED = 3
} kedge_source;

/* "in place", "moved", "rebuilt", "fetched"; "unknown" for another number. Lives for ever. */
const char* kedge_source_name(kedge_source source);

typedef struct kedge_info {
  char tag[KEDGE_TAG_SIZE];
  char commit_id[KEDGE_ID_SIZE];
  char parent_commit_id[KEDGE_ID_SIZE]; /* zeros for the first of its lineage */
  kedge_source source;
  uint32_t world_size;   /* ranks that saved it */
  uint32_t logical_rank; /* the one that this process loads */
  uint64_t generation;
  uint64_t incarnation;
  uint64_t total_bytes; /* container bytes of all ranks */
  int64_t time_ns;      /* since 1970, when it was created */
  size_t attribute_count;
  uint64_t reserved[8]; /* zero */
} kedge_info;

/* The checkpoint that is open, or was opened last. KEDGE_BAD_STATE if none ever was. */
kedge_error kedge_get_info(const kedge_engine* engine, kedge_info* info);

/* An attribute of that checkpoint by its key: up to `capacity` numbers are copied to `values` (null if `capacity` is
 * 0), `count`, if not null, becomes how many there are. KEDGE_NOT_FOUND: no such key; KEDGE_MISMATCH: it is of another
 * type (the text says which); KEDGE_BAD_STATE. */
kedge_error kedge_get_attribute_int64(const kedge_engine* engine, const char* key, int64_t* values, size_t capacity,
                                      size_t* count);
kedge_error kedge_get_attribute_double(const kedge_engine* engine, const char* key, double* values, size_t capacity,
                                       size_t* count);
/* The same for a string: with its closing zero, cut to `size` bytes; `length`, if not null, becomes the length of the
 * whole string without it. */
kedge_error kedge_get_attribute_string(const kedge_engine* engine, const char* key, char* buffer, size_t size,
                                       size_t* length);

typedef enum kedge_placement KEDGE_AS_INT {
  KEDGE_PLACEMENT_OWN = 0,       /* its rank's own */
  KEDGE_PLACEMENT_SHARD = 1,     /* a block of a global array */
  KEDGE_PLACEMENT_REPLICATED = 2 /* the same on every rank */
} kedge_placement;

/* One region of this rank's part of the open checkpoint. */
typedef struct kedge_region {
  const char* name; /* belongs to the engine, valid until kedge_close */
  uint64_t size_bytes;
  kedge_dtype dtype;
  kedge_placement placement;
  int dimensions;
  int routed; /* 1: a file; not to be had with kedge_load */
  uint64_t shape[KEDGE_MAX_DIMENSIONS];
  uint64_t global_shape[KEDGE_MAX_DIMENSIONS]; /* of a shard, else zeros */
  uint64_t offset[KEDGE_MAX_DIMENSIONS];       /* of a shard, else zeros */
  uint64_t reserved[8];                        /* zero */
} kedge_region;

/* How many regions the open checkpoint has on this rank, and each by its index or name: what to make room for before
 * kedge_load. KEDGE_BAD_STATE: none is open; KEDGE_NOT_FOUND: no such index or name. */
kedge_error kedge_region_count(const kedge_engine* engine, size_t* count);
kedge_error kedge_get_region(const kedge_engine* engine, size_t index, kedge_region* region);
kedge_error kedge_find_region(const kedge_engine* engine, const char* name, kedge_region* region);

/* Bytes of one element; 0 for a number that is no type. */
size_t kedge_dtype_size(kedge_dtype dtype);

/* Copies a region out, type and shape being those that were saved; every byte is checked. On failure the memory is
 * undefined, and kedge_close reports the first one on all ranks. KEDGE_NOT_FOUND, KEDGE_MISMATCH, KEDGE_CORRUPT,
 * KEDGE_INVALID_ARGUMENT, KEDGE_BAD_STATE, KEDGE_IO. */
kedge_error kedge_load(kedge_engine* engine, const char* name, void* data, kedge_dtype dtype, int dimensions,
                       const uint64_t* shape);

/* COLLECTIVE. Frees what kedge_open took and reports the first failure since then: only when it returns KEDGE_OK may
 * what was loaded be used. After KEDGE_CORRUPT, opening the newest gives the one before. */
KEDGE_MUST_CHECK kedge_error kedge_close(kedge_engine* engine);

#ifdef __cplusplus
}
#endif

#endif
/* NOLINTEND(modernize-*,readability-identifier-naming) */
